"""Whether this host ends what a user runs when the user's last login ends."""

import glob
import os
import pwd
import re

from supervisor_files import read_file  # type: ignore[import-not-found]

FOLDERS = (
    "/etc/systemd",
    "/run/systemd",
    "/usr/local/lib/systemd",
    "/usr/lib/systemd",
    "/lib/systemd",
)
SETTING = re.compile(
    rb"^[ \t]*(#?)[ \t]*(KillUserProcesses|KillOnlyUsers|KillExcludeUsers)[ \t]*=(.*)$", re.M
)


def ends_at_logout(root: str = "", user: str = "") -> bool:
    """logind's KillUserProcesses without linger for this user; never for who is excluded, as root is."""
    if not os.path.isdir(root + "/run/systemd/system"):
        return False  # no systemd: nobody keeps sessions here
    user = user or user_name()
    if os.path.exists("%s/var/lib/systemd/linger/%s" % (root, user)):
        return False
    settings = logind_settings(root)
    only = settings.get("KillOnlyUsers", "").split()
    excluded = settings.get("KillExcludeUsers", "root").split()
    kills = settings.get("KillUserProcesses", "no").lower() in ("yes", "true", "1", "on")
    return kills and user not in excluded and (not only or user in only)


def logind_settings(root: str) -> "dict[str, str]":
    """As set, else as the commented defaults of the main file say; later files win over earlier ones."""
    found: "dict[str, str]" = {}
    for comment in (b"#", b""):
        for path in settings_files(root):
            for mark, name, value in SETTING.findall(read_file(path)):
                if mark == comment:
                    found[name.decode()] = value.decode("utf-8", "replace").strip()
    return found


def settings_files(root: str) -> "list[str]":
    main = next((p for p in (root + f + "/logind.conf" for f in FOLDERS) if os.path.exists(p)), "")
    parts: "dict[str, str]" = {}
    for folder in reversed(FOLDERS):
        for path in glob.glob(root + folder + "/logind.conf.d/*.conf"):
            parts[os.path.basename(path)] = path
    return [main] * bool(main) + [parts[name] for name in sorted(parts)]


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
