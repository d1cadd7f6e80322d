"""Runs jobs on a host and answers for them; shipped as text and run by the host's own Python >= 3.6.

    supervisor.py serve               the agent: requests as JSON lines on stdin, frames on stdout

A job never depends on us: its output goes straight to a file, an `sh` between supervisor and job
keeps its exit code if the supervisor dies, and every fact lies in the run's folder, in records that
are allocated at the start and written in place, so that a full disk loses none:

    ROOT/v1/HOST-ID/RUN-ID/     0700; its mkdir is the claim, so that a second start finds it
      spec.json    what was asked, without the values of the environment
      sup.json     who supervises and what the job is: pids with start times, boot, cards
      events.jsonl what happened to it: started, ended, started again, a disk that fills
      attempts/    a file for each attempt; who makes it may start that one
      lock         flock, held by the supervisor for life
      job.lock     flock, inherited by the job
      log          stdout and stderr of the job, appended
      hb           sign of life every 2 s, phase, hole of the log, progress of a stop
      exit         how it ended, by the supervisor; exit.shim: by the sh, if the supervisor is gone
      stop.json    the stop that was asked for
      sup.log      our own tracebacks
"""

import os
import select
import signal
import struct
import sys
import time

from supervisor_care import adopt, events, restart  # type: ignore[import-not-found]
from supervisor_files import MIB, Refused, parse_object, to_path  # type: ignore[import-not-found]
from supervisor_host import disk_space, incarnation  # type: ignore[import-not-found]
from supervisor_list import RunList  # type: ignore[import-not-found]
from supervisor_log import Tail  # type: ignore[import-not-found]
from supervisor_output import Output  # type: ignore[import-not-found]
from supervisor_processes import send_signal  # type: ignore[import-not-found]
from supervisor_prune import Pruner  # type: ignore[import-not-found]
from supervisor_search import begin, cancel  # type: ignore[import-not-found]
from supervisor_spec import check_spec, is_environment  # type: ignore[import-not-found]
from supervisor_start import Start, check_cwd, claim  # type: ignore[import-not-found]
from supervisor_stop import Stop  # type: ignore[import-not-found]
from supervisor_store import Store, checked_id  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]

PROTOCOL = 1
VERSION = "1"
MAGIC = 0x434B5031

MAX_LINE_BYTES = 2 * MIB
MAX_QUEUED_BYTES = MIB
"""While more than this waits to be sent no request is read; tails stop at a quarter of it."""
READ_BYTES = 256 * 1024
MAX_TAILS = 64
POLL_S = 0.05
IDLE_EXIT_S = 300.0
"""An agent that hears nothing for so long is alone: its client pings."""


NONSENSE = (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)
"""What a request or a spoilt record of a wrong form raises: an answer, and no end of the agent."""


class Agent:
    """Answers one client about every run of this host, on one pair of pipes and in one thread."""

    def __init__(self, requests: int, output: "Output") -> None:
        self._requests = requests
        self._output = output
        self._store = Store()
        self._list = RunList(self._store)
        self._pruner = Pruner(self._store)
        self._line = bytearray()
        self._heard_at = time.monotonic()
        self._open = True
        self._umask = os.umask(0o077)
        self._waiting: "dict[int, Any]" = {}
        self._tails: "dict[int, Tail]" = {}
        self._moving = False

    def serve(self) -> None:
        """Until the client closes its end, or is silent for long."""
        hello = {"protocol": PROTOCOL, "version": VERSION, "python": sys.version.split()[0]}
        self._output.send_object(b"H", MAGIC, hello)
        while self._open and time.monotonic() - self._heard_at < IDLE_EXIT_S:
            self._output.flush()
            self._wait()
            self._step_waiting()
            self._step_tails()
            self._pruner.step(time.monotonic())

    def _wait(self) -> None:
        listens = [self._requests] if len(self._output) < MAX_QUEUED_BYTES else []
        talks = [1] if len(self._output) else []
        eager = any(getattr(one, "eager", False) for one in self._waiting.values())
        patience_s = (
            0.0 if self._moving or eager else POLL_S if self._waiting or self._tails else 30.0
        )
        readable, _writable, _none = select.select(listens, talks, [], patience_s)
        if readable:
            self._read()

    def _read(self) -> None:
        data = os.read(self._requests, 65536)
        self._heard_at = time.monotonic()
        self._open = bool(data) and len(self._line) < MAX_LINE_BYTES
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = rest
        for line in lines:
            self._take(bytes(line))

    def _take(self, line: bytes) -> None:
        request = parse_object(line)
        number = request.get("id")
        if not isinstance(number, int) or not 0 <= number < 1 << 32:
            number = 0
        try:
            method = self.METHODS.get(str(request.get("op")))
            if method is None:
                raise Refused("bad_request", op=str(request.get("op"))[:50])
            answer = method(self, number, request)
        except Refused as refusal:
            self._refuse(number, refusal)
        except NONSENSE as error:
            self._refuse(number, Refused("bad_request", why=repr(error)[:200]))
        except OSError as error:
            self._refuse(number, Refused("io", why=str(error)[:300]))
        else:
            if answer is not None:
                self._output.send_object(b"R", number, answer)

    def _refuse(self, number: int, refusal: "Refused") -> None:
        self._output.send_object(b"R", number, {"error": refusal.code, "facts": refusal.facts})

    def _step_waiting(self) -> None:
        for number, waiting in list(self._waiting.items()):
            try:
                answer = waiting.step(time.monotonic())
            except Refused as refusal:
                answer = {"error": refusal.code, "facts": refusal.facts}
            except NONSENSE as error:
                answer = {"error": "bad_request", "facts": {"why": repr(error)[:200]}}
            except OSError as error:
                answer = {"error": "io", "facts": {"why": str(error)[:300]}}
            if answer is not None:
                del self._waiting[number]
                self._output.send_object(b"R", number, answer)

    def _step_tails(self) -> None:
        """A chunk of each, so that a noisy one leaves the others, and the requests, their share."""
        self._moving = False
        if len(self._output) < MAX_QUEUED_BYTES // 4:
            self._moving = any([self._step_tail(number) for number in list(self._tails)])

    def _step_tail(self, number: int) -> bool:
        tail = self._tails[number]
        try:
            frame = tail.step(time.monotonic())
        except (OSError,) + NONSENSE as error:
            self._refuse(number, Refused("io", why=str(error)[:300]))
            self._end_tail(number)
            return False
        if frame is not None:
            self._output.send(frame[0], number, frame[1])
        if tail.ended:
            self._end_tail(number)
        return frame is not None and not tail.ended

    def _end_tail(self, number: int) -> None:
        tail = self._tails.pop(number, None)
        if tail is not None:
            tail.close()

    # requests

    def _on_open(self, _number: int, request: "Json") -> "Json":
        """Say who this host is, and which folder for runs its configuration names."""
        self._store.given = request.get("run_root") or None
        answer: "Json" = {"host_id": self._store.host, "now_s": time.time(), "root": None}
        answer.update(incarnation())
        try:
            answer["root"] = self._store.choose()
        except Refused as refusal:
            answer.update(error_of_root=refusal.code, facts_of_root=refusal.facts)
        return answer

    def _on_ping(self, _number: int, _request: "Json") -> "Json":
        return {"now_s": time.time()}

    def _on_start(self, number: int, request: "Json") -> "Json | None":
        spec = check_spec(request["spec"])
        secrets = request.get("secrets") or {}
        if not is_environment(secrets):
            raise Refused("bad_spec", key="secrets")
        existing = self._existing(spec["run"])
        if existing is not None:
            return existing
        check_cwd(spec)
        try:
            path = claim(self._store.choose(spec.get("run_root")), spec, self._store.host)
        except FileExistsError:
            return self._existing(spec["run"])
        order = {"spec": spec, "secrets": secrets, "umask": self._umask}
        self._waiting[number] = Start(path, order)
        return None

    def _on_restart(self, number: int, request: "Json") -> "Json | None":
        return self._wait_for(number, restart(self._store, request, self._umask))

    def _on_adopt(self, number: int, request: "Json") -> "Json | None":
        return self._wait_for(number, adopt(self._store, request))

    def _wait_for(self, number: int, begun: "Json | Start") -> "Json | None":
        if isinstance(begun, dict):
            return begun
        self._waiting[number] = begun
        return None

    def _on_events(self, _number: int, request: "Json") -> "Json":
        return dict(events(self._store, request))

    def _existing(self, run_id: str) -> "Json | None":
        try:
            run = self._store.find(run_id)
        except Refused:
            return None
        with run:
            return {"existed": True, "record": run.describe()}

    def _on_list(self, _number: int, request: "Json") -> "Json":
        return dict(self._list.page(request.get("fresh") is True))

    def _on_status(self, _number: int, request: "Json") -> "Json":
        with self._store.find(checked_id(request)) as run:
            return {"record": run.describe()}

    def _on_stop(self, number: int, request: "Json") -> None:
        run = self._store.find(checked_id(request))
        try:
            self._waiting[number] = Stop(run, request)
        except BaseException:
            run.close()
            raise

    def _on_go(self, _number: int, request: "Json") -> "Json":
        """The call that a held run waits for."""
        with self._store.find(checked_id(request)) as run:
            run.write_record("go.json", {"wall_s": time.time()})
            supervisor = run.record("sup.json")
            if run.is_supervised() and supervisor:
                send_signal(supervisor["pid"], supervisor["start"], signal.SIGUSR1)
            return {"record": run.describe()}

    def _on_tail(self, number: int, request: "Json") -> "Json":
        for key in ("offset", "window"):
            if not isinstance(request[key], int) or not 0 <= request[key] < 1 << 62:
                raise Refused("bad_request", key=key)
        if len(self._tails) >= MAX_TAILS or number in self._tails:
            raise Refused("too_many_tails", limit=MAX_TAILS)
        run = self._store.find(checked_id(request))
        self._tails[number] = Tail(run, request)
        return {"record": run.describe()}

    def _on_acknowledge(self, _number: int, request: "Json") -> None:
        tail = self._tails.get(request["tail"])
        if tail is not None:
            tail.acknowledge(int(request["bytes"]))

    def _on_untail(self, _number: int, request: "Json") -> "Json":
        self._end_tail(request["tail"])
        return {}

    def _on_search(self, number: int, request: "Json") -> None:
        """Find a text in a log, or one of its lines by its number."""
        begin(self._waiting, number, self._store.find(checked_id(request)), request)

    def _on_cancel(self, _number: int, request: "Json") -> None:
        """A search, and nothing else, is of no interest any more."""
        cancel(self._waiting, request["search"])

    def _on_read(self, number: int, request: "Json") -> None:
        """Bytes of a log, as a frame of its own kind."""
        offset, length = int(request["offset"]), min(int(request["length"]), READ_BYTES)
        with self._store.find(checked_id(request)) as run:
            log = run.open("log", os.O_RDONLY)
            try:
                data = os.pread(log, max(0, length), max(0, offset))
                size = os.fstat(log).st_size
            finally:
                os.close(log)
        self._output.send(b"B", number, struct.pack(">QQ", offset, size) + data)

    def _on_signal(self, _number: int, request: "Json") -> "Json":
        name, pid, start = request["name"], int(request["pid"]), int(request["started_ticks"])
        if name not in ("INT", "TERM", "KILL") or pid <= 1 or pid == os.getpid():
            raise Refused("bad_request", name=str(name)[:20], pid=pid)
        try:
            return {"sent": send_signal(pid, start, getattr(signal, "SIG" + name))}
        except PermissionError as error:
            raise Refused("not_yours", pid=pid) from error

    def _on_disk(self, _number: int, request: "Json") -> "Json":
        return dict(disk_space(to_path(request["path"])))

    METHODS: "dict[str, Callable[[Agent, int, Json], Json | None]]" = {
        "open": _on_open,
        "ping": _on_ping,
        "start": _on_start,
        "restart": _on_restart,
        "adopt": _on_adopt,
        "events": _on_events,
        "list": _on_list,
        "status": _on_status,
        "stop": _on_stop,
        "go": _on_go,
        "tail": _on_tail,
        "acknowledge": _on_acknowledge,
        "untail": _on_untail,
        "read": _on_read,
        "search": _on_search,
        "cancel": _on_cancel,
        "signal": _on_signal,
        "disk": _on_disk,
    }


def main(argv: "list[str]") -> int:
    if argv != ["serve"]:
        sys.stderr.write("usage: supervisor.py serve\n")
        return 64
    try:
        Agent(0, Output(1)).serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone; the runs are not
    finally:
        os.set_blocking(1, True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
