"""A catalogue straight from its .po file: nothing to compile, nothing that can be out of step."""

from __future__ import annotations

import ast
import gettext
from pathlib import Path


class Catalogue(gettext.NullTranslations):
    """Messages of one language; what is missing stays English."""

    def __init__(self, messages: dict[str, str]) -> None:
        super().__init__()
        self._messages = messages

    def gettext(self, message: str) -> str:
        return self._messages.get(message) or message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Languages without plural forms have one text for all numbers."""
        return self._messages.get(msgid1) or (msgid1 if n == 1 else msgid2)


def read_po(path: Path) -> dict[str, str]:
    """msgid to msgstr (of a plural, the first form). Comments and the header entry are left out."""
    messages: dict[str, str] = {}
    parts = {"msgid": "", "msgstr": ""}
    field = ""
    for line in (*path.read_text(encoding="utf-8").splitlines(), 'msgid ""'):
        word, _space, rest = line.partition(" ")
        if word == "msgid":
            if parts["msgid"] and parts["msgstr"]:
                messages[parts["msgid"]] = parts["msgstr"]
            parts = {"msgid": "", "msgstr": ""}
        if word in ("msgid", "msgstr", "msgstr[0]"):
            field = word.partition("[")[0]
            parts[field] += _text(rest)
        elif line.startswith('"') and field:
            parts[field] += _text(line)
        else:
            field = ""
    return messages


def _text(quoted: str) -> str:
    value = ast.literal_eval(quoted.strip())
    return value if isinstance(value, str) else ""
