"""Where our own files are: one folder that `COCKPIT_HOME` moves as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.domain.text import safe_line
from cockpit.errors import StorageError

HOME_VARIABLE = "COCKPIT_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    """The folder with everything that cockpit keeps on this computer."""

    root: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Home:
        """`COCKPIT_HOME`, or the platform's folder for a user's configuration."""
        chosen = (os.environ if environ is None else environ).get(HOME_VARIABLE, "")
        if chosen:
            return cls(_chosen_root(chosen))
        import platformdirs

        return cls(platformdirs.user_config_path("cockpit", appauthor=False))

    @property
    def hosts_toml(self) -> Path:
        return self.root / "hosts.toml"

    @property
    def settings_toml(self) -> Path:
        return self.root / "settings.toml"

    @property
    def profiles_dir(self) -> Path:
        return self.root / "profiles"

    @property
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    @property
    def db(self) -> Path:
        return self.root / "cockpit.db"

    @property
    def recordings(self) -> Path:
        return self.root / "recordings"

    @property
    def log(self) -> Path:
        return self.root / "cockpit.log"

    def ensure(self) -> Path:
        """Make the folder, readable by its owner alone. Raises StorageError."""
        return ensure_private_dir(self.root)


def expanded(text: str | Path) -> Path:
    """The path with `~` and `~user` filled in; a user who is not there stays as it was written."""
    return Path(os.path.expanduser(text))


def is_there(path: str | Path) -> bool:
    """Whether that is a file that may be looked at; a name that no file can have is none."""
    try:
        return expanded(path).is_file()
    except OSError:
        return False


def _chosen_root(chosen: str) -> Path:
    root = expanded(chosen)
    if str(root).startswith("~"):
        raise StorageError(path=safe_line(chosen), why="No such user")
    return root.absolute()


def ensure_private_dir(folder: Path) -> Path:
    """Make `folder` with mode 0700; one that exists keeps its mode. Raises StorageError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(path=str(folder), why=error.strerror or str(error)) from error
    return folder


def tilde(path: Path | str) -> str:
    """The path as a person would write it, with `~` for the user's own folder."""
    text, own = str(path), os.path.expanduser("~")
    return "~" + text[len(own) :] if text == own or text.startswith(own + os.sep) else text
