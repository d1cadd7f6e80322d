"""What a job's environment needs beyond the session's: what the platform sets for logins only, a Python
environment by its path, and caches where there is room for them.

All of it is read, nothing of it is run but an environment's own activation scripts, in a child with a limit.
"""

import os
import re
import signal
import subprocess
import time

from supervisor_files import Refused, read_file, to_bytes, to_path  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Env = dict[bytes, bytes]

PLATFORM_FILES = ("/etc/environment", "/etc/rp_environment")
"""RunPod and vast.ai put the container's variables there, and source them in ~/.bashrc alone."""
MAX_BYTES, MAX_VARIABLES, MAX_VALUE_BYTES = 256 * 1024, 512, 32 * 1024
OF_A_SESSION = frozenset(
    b"HOME USER LOGNAME SHELL PWD OLDPWD SHLVL TERM MAIL HOSTNAME TMPDIR _".split()
)
OF_INIT = (
    b"SSH_",
    b"XDG_",
    b"NOTIFY_",
    b"LISTEN_",
    b"INVOCATION_",
    b"JOURNAL_",
    b"COCKPIT_",
    b"BASH_",
)
"""Variables of pid 1 that mean nothing, or harm, in another process."""
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
CONTAINER_NAMES = (b"container", b"RUNPOD_POD_ID", b"VAST_CONTAINERLABEL", b"CONTAINER_ID")

DATA_DISKS = ("/root/autodl-tmp", "/workspace", "/home/featurize/work")
ROOMY_BYTES = 30 << 30
"""A home with less free space than this does not hold a model cache for long."""
CACHES = {
    b"HF_HOME": "huggingface",
    b"XDG_CACHE_HOME": "xdg",
    b"TRITON_CACHE_DIR": "triton",
    b"TORCHINDUCTOR_CACHE_DIR": "inductor",
    b"VLLM_CACHE_ROOT": "vllm",
    b"MPLCONFIGDIR": "matplotlib",
}

ACTIVATION_S = 15.0
SOURCE_ALL = (
    'for f in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do [ -r "$f" ] && . "$f"; done '
    ">/dev/null 2>&1; exec env -0"
)
_LINE = re.compile(rb"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


# what the platform sets


def host_environment(root: str = "") -> "Env":
    """The session's variables, with the platform's where the session says nothing."""
    env = dict(os.environb)
    for name, value in platform_variables(root).items():
        if name == b"PATH":
            env[b"PATH"] = joined_path(env.get(b"PATH", b""), value)
        else:
            env.setdefault(name, value)
    return env


def platform_variables(root: str = "") -> "Env":
    found: "Env" = {}
    for path in PLATFORM_FILES:
        found.update(assignments(read_file(root + path, MAX_BYTES)))
    first = first_environment(root)
    if is_container(root, first):
        for name, value in first.items():
            if not name.startswith(OF_INIT):
                found.setdefault(name, value)
    usable = [(name, value) for name, value in found.items() if is_usable(name, value)]
    return dict(usable[:MAX_VARIABLES])


def first_environment(root: str = "") -> "Env":
    items = read_file(root + "/proc/1/environ", MAX_BYTES).split(b"\0")
    return dict(item.split(b"=", 1) for item in items if b"=" in item)


def in_container() -> bool:
    return is_container("", first_environment())


def is_container(root: str, first: "Env") -> bool:
    """On a machine of its own pid 1 is an init, whose variables are nobody else's."""
    marks = any(os.path.exists(root + mark) for mark in CONTAINER_MARKS)
    return marks or any(first.get(name) for name in CONTAINER_NAMES)


def is_usable(name: bytes, value: bytes) -> bool:
    if name in OF_A_SESSION or len(value) > MAX_VALUE_BYTES or b"\0" in value:
        return False
    return re.match(rb"[A-Za-z_][A-Za-z0-9_]*$", name) is not None


def assignments(text: bytes) -> "Env":
    """NAME=value lines, with or without `export` and quotes. What a shell would have to expand is left out."""
    found: "Env" = {}
    for line in text.split(b"\n"):
        match = _LINE.match(line.rstrip())
        if match is None:
            continue
        name, value = match.groups()
        quote = value[:1]
        if quote in (b'"', b"'") and len(value) > 1 and value.endswith(quote):
            value = value[1:-1]
        if quote == b'"':
            value = re.sub(rb'\\(["\\$`])', rb"\1", value)
        elif quote != b"'":
            value = value.split(b" #")[0].strip()
        if quote == b"'" or not re.search(rb"\$[A-Za-z_{(]|`", value):
            found[name] = value
    return found


def joined_path(first: bytes, more: bytes) -> bytes:
    """Folders of both, each once, in their order; relative ones of the platform are left out."""
    folders = first.split(b":") if first else []
    for folder in more.split(b":"):
        if folder.startswith(b"/") and folder not in folders:
            folders.append(folder)
    return b":".join(folders)


# caches


def move_caches(env: "Env", data_dir: "str | None", fallback: str) -> "str | None":
    """Set the cache variables that are not set; the folder that they point into now, None when all is well.

    A host's own `data_dir` is always used. A platform's data disk is when the home is small, or takes nothing.
    """
    home = os.fsdecode(env.get(b"HOME") or b"/")
    takes_nothing = not os.access(home, os.W_OK | os.X_OK)
    base = to_path(data_dir) if data_dir else None
    if base is None:
        disk = next((each for each in DATA_DISKS if os.access(each, os.W_OK | os.X_OK)), None)
        if disk is not None and (takes_nothing or has_more_room(disk, home)):
            base = disk
    if base is None and takes_nothing:
        base = fallback
    if base is None:
        return None
    folder, moved = os.path.join(base, ".cache"), False
    for name, inner in CACHES.items():
        if name in env or (not takes_nothing and name == b"HF_HOME" and has_models(home)):
            continue
        env[name], moved = os.fsencode(os.path.join(folder, inner)), True
    return folder if moved else None


def has_more_room(disk: str, home: str) -> bool:
    try:
        if os.stat(disk).st_dev == os.stat(home).st_dev:
            return False
        there, here = os.statvfs(disk), os.statvfs(home)
    except OSError:
        return False
    free_here = here.f_bavail * here.f_frsize
    return free_here < ROOMY_BYTES and there.f_bavail * there.f_frsize > free_here


def has_models(home: str) -> bool:
    """What was downloaded already is not downloaded again."""
    return os.path.isdir(os.path.join(home, ".cache", "huggingface", "hub"))


def complete(env: "Env") -> None:
    """A mirror of the model hub serves plain files: the other protocol would go round it, and stall."""
    if env.get(b"HF_ENDPOINT"):
        env.setdefault(b"HF_HUB_DISABLE_XET", b"1")


# a Python environment


def expand_prefixes(env: "Env") -> None:
    for name in (b"CONDA_PREFIX", b"VIRTUAL_ENV"):
        if env.get(name, b"").startswith(b"~"):
            env[name] = os.fsencode(to_path(os.fsdecode(env[name])))


def check_python(spec: "Json") -> None:
    """The environment that a profile names must be there. Raises Refused with the path that was looked at."""
    for name in ("CONDA_PREFIX", "VIRTUAL_ENV"):
        prefix = spec["env"].get(name)
        if prefix:
            python = os.path.join(to_path(prefix), "bin", "python")
            if not os.access(python, os.X_OK):
                raise Refused("no_environment", path=python)


def activate(env: "Env", limit_s: float = ACTIVATION_S) -> bool:
    """Take over what the conda environment's own scripts set; False when they failed or took too long."""
    prefix = env.get(b"CONDA_PREFIX")
    if not prefix or not os.path.isdir(os.path.join(prefix, b"etc/conda/activate.d")):
        return True
    try:
        child = subprocess.Popen(
            [b"/bin/sh", b"-c", to_bytes(SOURCE_ALL)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    text = _output(child, limit_s)
    found = dict(item.split(b"=", 1) for item in text.split(b"\0") if b"=" in item)
    if child.returncode != 0 or b"PATH" not in found:
        return False
    for name in (b"_", b"SHLVL", b"PWD", b"OLDPWD"):
        found.pop(name, None)
    env.update(found)
    return True


def _output(child: "subprocess.Popen[bytes]", limit_s: float) -> bytes:
    """What it prints, up to a bound; whatever it started is ended with it."""
    import select

    assert child.stdout is not None
    until, text = time.monotonic() + limit_s, b""
    while len(text) < MAX_BYTES:
        left = until - time.monotonic()
        if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
            break
        piece = os.read(child.stdout.fileno(), 65536)
        if not piece:
            break
        text += piece
    ended = False
    while not ended and time.monotonic() < until:
        ended = child.poll() is not None
        if not ended:
            time.sleep(0.01)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    child.wait()
    child.stdout.close()
    return text
