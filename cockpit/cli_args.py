"""Every command and its arguments, and nothing else: importing this costs argparse alone."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from cockpit import __version__
from cockpit.errors import UsageError

SHORT_DESCRIPTION = "One terminal for rented GPUs. Without a command: the screen."


class Parser(argparse.ArgumentParser):
    """argparse whose mistakes are UsageErrors (64, not 2) and whose options cannot be shortened."""

    def __init__(self, **options: object) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split())
        raise UsageError("command_line", problem=message + _near(message), usage=usage)


def _near(message: str) -> str:
    """The word that was meant, where argparse lists those that there are."""
    found = _CHOICES.search(message)
    if found is None:
        return ""
    import difflib  # for mistakes only

    words = [word.strip(" '") for word in found[2].split(",")]
    near = difflib.get_close_matches(found[1].lower(), words, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


_CHOICES = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
Add = Callable[..., argparse.ArgumentParser]


def build_parser() -> Parser:
    parser = Parser(prog="cockpit", description=SHORT_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    parser.add_argument("--no-color", action="store_true", help="no colour on the screen")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    for add in (_runs, _hosts, _watching, _desk, _profiles, _rest):
        add(commands.add_parser)
    return parser


def _json(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def _host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", action="append", default=[], metavar="H", help="only this host; may be repeated"
    )


def _runs(add: Add) -> None:
    words = "start a profile, show its log, end with its exit code"
    leaving = "ctrl+c stops the run; a second one, or anything else that ends this command, leaves it (75)"
    run = _json(add("run", help=words, description=words, epilog=leaving))
    run.add_argument("profile", metavar="PROFILE", help="a name, or a path to a .toml file")
    _host(run)
    run.add_argument(
        "--gpus", type=_gpu_list, metavar="0,1", help="take exactly these cards of the host"
    )
    run.add_argument(
        "--set", action="append", default=[], metavar="K=V", dest="overrides",
        help="change a key of the profile, such as --set gpus.count=2",
    )  # fmt: skip
    run.add_argument("--detach", action="store_true", help="print the run's id and leave it")
    run.add_argument("--dry-run", action="store_true", help="show what would run, start nothing")

    ps = _json(add("ps", help="every run on every host"))
    _host(ps)
    ps.add_argument("--all", action="store_true", help="ended runs too, however old")

    logs = _json(add("logs", help="a run's log, byte for byte into a pipe"))
    logs.add_argument("run", metavar="RUN")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    logs.add_argument(
        "--rank", type=_rank, default=None, metavar="N",
        help="of a run on several hosts: the rank whose log is meant, from 0",
    )  # fmt: skip
    logs.add_argument(
        "--from", type=_byte_offset, default=None, dest="from_byte", metavar="BYTE",
        help="start at this byte; -10000 is 10,000 bytes before the end",
    )  # fmt: skip

    for name, text in (
        ("stop", "end a run and all of its processes"),
        ("attach", "follow a run as `cockpit run` would"),
        ("wait", "wait for a run's end and exit with its code"),
    ):
        _json(add(name, help=text)).add_argument("run", metavar="RUN")


def _hosts(add: Add) -> None:
    hosts = add("hosts", help="which hosts there are: add, list, remove, trust, import")
    actions = hosts.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    new = _json(actions.add_parser("add", help="record a host; nothing is connected"))
    new.add_argument("name", metavar="NAME")
    new.add_argument(
        "pasted", metavar='"ssh …"', help="the ssh command as the platform shows it, in quotes"
    )
    new.add_argument("--replace", action="store_true", help="the name exists: take the new address")
    new.add_argument("--price", metavar="PRICE", help='such as "0.42 USD/h"')
    new.add_argument("--tag", action="append", default=[], dest="tags", metavar="TAG")
    _json(actions.add_parser("list", help="every host, as it would be reached"))
    _json(actions.add_parser("remove", help="take a host out")).add_argument("name", metavar="NAME")
    trust = _json(actions.add_parser("trust", help="accept a host's key by its fingerprint"))
    trust.add_argument("name", metavar="NAME")
    trust.add_argument("--fingerprint", metavar="SHA256:…")
    trust.add_argument("--hop", type=_positive, metavar="N", help="the Nth jump host on the way")
    bring = _json(actions.add_parser("import", help="hosts from ~/.ssh/config or pasted lines"))
    bring.add_argument(
        "source", nargs="?", default="ssh-config", metavar="SOURCE",
        help='"ssh-config" (the default), a file in its format, or - for one ssh command a line',
    )  # fmt: skip
    bring.add_argument("--only", action="append", default=[], metavar="NAME")
    bring.add_argument("--replace", action="store_true")
    bring.add_argument("--dry-run", action="store_true", help="show them, record nothing")


def _watching(add: Add) -> None:
    status = _json(add("status", help="every host and card, once"))
    _host(status)
    status.add_argument("--watch", action="store_true", help="again with every sample")
    scan = _json(add("scan", help="what went wrong in a log, by the detectors of live runs"))
    scan.add_argument("file", metavar="FILE|-", nargs="?", default=None)
    scan.add_argument(
        "--memory", metavar="CSV", help="the leak detector on lines of t_s,used_mib[,total_mib]"
    )
    scan.add_argument("--fail-on", choices=("fatal", "warning", "notice"), metavar="SEVERITY")
    journal = _json(add("journal", help="what is remembered of a host: runs, incidents"))
    journal.add_argument("host", metavar="HOST")
    words = "play a recording of the flight recorder on the screen"
    replay = _json(add("replay", help=words, description=words))
    replay.add_argument(
        "file", metavar="FILE", help="a path, or a name in the folder recordings of COCKPIT_HOME"
    )
    replay.add_argument(
        "--redact", metavar="OUT", help="write a copy without names of hosts, users and addresses"
    )


def _desk(add: Add) -> None:
    """Parsed and not listed: this version does not have them."""
    doctor = _json(add("doctor"))
    doctor.add_argument("host", metavar="HOST")
    doctor.add_argument("--profile", metavar="P")
    fit = _json(add("fit"))
    size = fit.add_mutually_exclusive_group()
    size.add_argument("--params", metavar="7B")
    size.add_argument("--config", metavar="CONFIG.JSON")
    size.add_argument("--model", metavar="NAME")
    fit.add_argument("--for", choices=("train", "serve"), dest="purpose")
    fit.add_argument("--method", choices=("full", "lora", "qlora"))
    fit.add_argument("--precision", choices=("bf16", "fp16", "fp32"))
    fit.add_argument("--quant", choices=("int8", "int4"))
    fit.add_argument("--optimizer")
    fit.add_argument("--zero", type=int, choices=(0, 1, 2, 3))
    for name in ("gpus", "batch", "seq", "concurrency"):
        fit.add_argument(f"--{name}", type=_positive, metavar="N")
    fit.add_argument("--kv-dtype")
    cost = _json(add("cost"))
    _host(cost)


def _profiles(add: Add) -> None:
    profile = add("profile", help="run profiles: list, check, new, schema")
    actions = profile.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    _json(actions.add_parser("list", help="the home's profiles and the shipped ones"))
    check = _json(actions.add_parser("check", help="every mistake of a profile, with its line"))
    check.add_argument("profile", metavar="FILE")
    check.add_argument("--set", action="append", default=[], metavar="K=V", dest="overrides")
    new = _json(actions.add_parser("new", help="a profile of your own from an existing one"))
    new.add_argument(
        "--from", required=True, dest="source", metavar="NAME", help="a profile, or a run of the past"
    )  # fmt: skip
    new.add_argument("name", nargs="?", metavar="NEW", help="name of the new profile")
    new.add_argument("--replace", action="store_true", help="overwrite it if it exists")
    _json(actions.add_parser("schema", help="JSON Schema of a profile, for editors"))


def _rest(add: Add) -> None:
    demo = add("demo", help="the screen on an embedded fleet; nothing leaves this computer")
    demo.add_argument("--hosts", type=_positive, metavar="N")
    ssh = add("ssh", help="a shell on a host, by the system's ssh")
    ssh.add_argument("host", metavar="HOST")
    serve = add("serve")
    serve.add_argument("--port", type=_port, default=8900)
    export = add("export")
    export.add_argument("--port", type=_port, default=9940)
    _json(add("help", help="what an error's code means")).add_argument(
        "code", nargs="?", metavar="CODE"
    )


def _gpu_list(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of card numbers such as 0,1")
    cards = tuple(int(part) for part in parts)
    if len(set(cards)) != len(cards):
        raise argparse.ArgumentTypeError(f"{text!r} names a card twice")
    return cards


def _byte_offset(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(text)


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise argparse.ArgumentTypeError(f"{text!r} is not a rank: they count from 0")
    return int(text)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line as values. Raises UsageError; `--help` and `--version` exit by themselves."""
    return build_parser().parse_args(argv)
