# mypy: ignore-errors
# ruff: noqa: F401, F821 - boot_fetch.py runs in these globals: it uses zlib and defines `fetched`.
# What a host's Python is started with: find the kept program, check it, run it. It travels and is compiled at every
# start, so the rest is in boot_run.py, which is kept with the program, and in boot_fetch.py, which is sent where
# there is none. Python 2 must be able to read it.
import sys

if sys.version_info < (3, 6):
    sys.exit(97)
if sys.path and not sys.path[0]:
    del sys.path[0]
import marshal
import os

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b
digest, name, fetch_bytes = sys.argv[1:4]
kept_as = "%s-%s-%s" % (name, sys.implementation.cache_tag, digest)
home, cache = os.environ.get("HOME", ""), os.environ.get("XDG_CACHE_HOME", "")
if cache[:1] != "/":
    cache = home + "/.cache" if home[:1] == "/" and home != "/" else "/var/tmp"
data, places = None, [place + "/cockpit-%d" % os.getuid() for place in (cache, "/var/tmp", "/tmp")]
for place in places:
    try:
        about = os.lstat(place)
        if about.st_mode & 0o170077 == 0o040000 and about.st_uid == os.getuid():
            fd = os.open(place + "/" + kept_as, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            data = os.read(fd, min(os.fstat(fd).st_size, 1 << 23))
            os.close(fd)
            kept = memoryview(data)[64:]
            if data[:64] == blake2b(kept, key=digest.encode()).digest():
                break
    except OSError:
        pass
    data = None


def say(word):
    line = "%s %d.%d.%d %s\n" % ((word,) + sys.version_info[:3] + (sys.executable,))
    os.write(1, line.encode("utf-8", "replace"))


if data is not None:
    say("have")
    codes = marshal.loads(kept)
else:
    try:
        import zlib

        say("need")
    except ImportError:
        say("need-plain")
    fetch = b""
    while len(fetch) < int(fetch_bytes):
        fetch += os.read(0, int(fetch_bytes) - len(fetch)) or sys.exit(74)
    exec(fetch)
    codes, place = fetched()
exec(marshal.loads(codes["boot_run"]))
