"""Lines that contain alarming words and are no incident: quoted, echoed, source code, handled."""

from __future__ import annotations

import re
from typing import Final

from cockpit.domain.signatures.model import Signature
from cockpit.domain.signatures.prefixes import Peeled

_REQUEST_LOG: Final = re.compile(
    r"\s*(?:Received request|Generated response|Receive: obj=|Finish: obj=|Sample \d+\b|Prompt:|"
    r"User:|Assistant:)"
)
_TEST_LOG: Final = re.compile(r"::test_|^(?:PASSED|FAILED|ERROR) tests?/|^# (?:HELP|TYPE) ")
_SHELL_ECHO: Final = re.compile(r"(?:[\w.@:~/-]*[$#] |\++ |>>> |>{1,3} )")
_SOURCE_CODE: Final = re.compile(
    r"\s{2,}(?:raise\b|if |elif |else:|except\b|return\b|assert |logger\.|log\.|logging\.|warnings\.|"
    r"print\(|self\.|with |for |while |try:|def |class |await |yield |File \"|f?[\"'#]|"
    r"[A-Za-z_][\w.]*(?: = |\())"
)
_COMMENT: Final = re.compile(r"\s*(?:#|//|--[a-z-]+ )")
_NOT_A_FAILURE: Final = "The caller indicates that this is not a failure"
_LOG_KEY: Final = re.compile(
    r"[\"']?(?:log|msg|message|error|err|exception|exc_info|event|stderr|detail|reason)[\"']?"
    r"\s*[:=]\s*[\"']$"
)
_HANDLED: Final = re.compile(
    r"\bcaught\b|\bretry|\bretrie|skipping|skipped|falling back|fall back|\bfallback\b|"
    r"\bignor(?:ed|ing)\b|recover|reducing|\bhalving\b|\bhandled\b|trying (?:again|a smaller)|autotun",
    re.IGNORECASE,
)
_FAILS_ON: Final = re.compile(
    r"retries exceeded|retries exhausted|after \d+ retries", re.IGNORECASE
)


def is_context(peeled: Peeled) -> bool:
    """Whether the whole line is something other than a program's own report of a failure."""
    message = peeled.message
    if _REQUEST_LOG.match(message) or _TEST_LOG.search(message) or _NOT_A_FAILURE in message:
        return True
    return any(form.match(message) for form in (_SOURCE_CODE, _SHELL_ECHO, _COMMENT))


def is_quoted(message: str, start: int) -> bool:
    """Whether the match lies inside a string that is data, and not a log record's own text."""
    opened = _open_quote(message[:start])
    return opened >= 0 and not _LOG_KEY.search(message[: opened + 1])


def _open_quote(before: str) -> int:
    """Where the string begins that is still open at the end of `before`; -1 when none is."""
    opened, quote, position = -1, "", 0
    while position < len(before):
        char = before[position]
        if char == "\\":
            position += 1
        elif opened >= 0:
            if char == quote and not _inside_word(before, position):
                opened = -1
        elif char == '"' or (char == "'" and not _inside_word(before, position)):
            opened, quote = position, char
        position += 1
    return opened


def _inside_word(text: str, position: int) -> bool:
    """An apostrophe as in "couldn't", which opens and closes nothing."""
    before = text[position - 1] if position else " "
    after = text[position + 1] if position + 1 < len(text) else " "
    return text[position] == "'" and before.isalnum() and after.isalnum()


def says_handled(message: str) -> bool:
    """Whether the line itself says that the failure was caught and something else is tried."""
    return bool(_HANDLED.search(message)) and not _FAILS_ON.search(message)


def level_allows(signature: Signature, level: str) -> bool:
    """Informational lines open nothing; warnings open what is a warning anyway."""
    if signature.any_level or signature.role == "metric" or level in ("", "error"):
        return True
    return level == "warning" and (signature.severity != "fatal" or signature.family == "gpu_oom")
