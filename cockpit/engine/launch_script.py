"""What a host would run, as a shell script that a person can read; secrets are names only.

For the eye and for `--dry-run`: the supervisor starts argv itself and no shell takes it apart.
"""

from __future__ import annotations

import shlex

from cockpit.launchers.base import Launch


def script_text(launch: Launch) -> str:
    lines = ["#!/bin/sh", f"cd {_path(launch.cwd)}"]
    if launch.path_first:
        folders = ":".join(_path(folder) for folder in launch.path_first)
        lines.append(f'export PATH={folders}:"$PATH"')
    lines += [f"export {name}={shlex.quote(value)}" for name, value in launch.env.items()]
    lines += [
        f': "${{{name}:={_default(value)}}}"; export {name}'
        for name, value in launch.env_defaults.items()
    ]
    lines += [f"# {name}: secret, sent on stdin" for name in launch.secret_names]
    lines.append(f"exec {shlex.join(launch.argv)}")
    return "\n".join(lines) + "\n"


def _path(text: str) -> str:
    """Quoted, and a leading `~` left for the host to expand."""
    if text == "~":
        return "~"
    if text.startswith("~/"):
        return f"~/{shlex.quote(text[2:])}" if text[2:] else "~"
    return shlex.quote(text)


def _default(value: str) -> str:
    return "".join(f"\\{char}" if char in '"\\$`}' else char for char in value)
