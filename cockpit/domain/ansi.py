"""Text of a host made harmless: colours become spans, every other escape and control goes.

Terminals obey text. A log line, a process name or an error could retitle the window, write the
clipboard or draw outside its pane, so nothing of a host reaches a screen or a store unless it
passed through here.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

Span: TypeAlias = tuple[int, int, str]
"""(start, end, style) on the plain text; styles as Rich writes them: "bold red on #202020"."""

DISPLAY_CHARS: Final = 4096
_MARKS_IN_A_ROW: Final = 3
"""Combining marks kept on one character: stacks of them paint over the neighbouring lines."""

ESCAPE: Final = re.compile(
    r"\x1b(?:\[(?P<params>[0-?]{0,64})[ -/]{0,8}(?P<final>[@-~]?)"
    r"|[\]PX^_][^\x1b\x07]{0,65536}(?:\x07|\x1b\\)"
    r"|[\]PX^_]"
    r"|[ -/]{0,8}[0-~]?)"
)
"""CSI; terminated strings (OSC, DCS, …); the opening of an unterminated one, whose text stays in
view; any other escape. Each part is bounded and the first character is one literal, for speed."""

_C1: Final = re.compile("[\x80-\x9f]")

_SELECTORS: Final = "\ufe00-\ufe0f\u180b-\u180d\U000e0100-\U000e01ef"
_MARKS: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_SELECTOR: Final = re.compile(f"[{_SELECTORS}]")
_CARE: Final = re.compile(f"[{_SELECTORS}{_MARKS}]")
_STACK: Final = re.compile(f"([{_MARKS}]{{{_MARKS_IN_A_ROW}}})[{_MARKS}]+")

_COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_FLAGS: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_FLAGS_OFF: Final = {
    22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",),
}  # fmt: skip


class _Cleaned(dict[int, str]):
    """What each character that is not printable is shown as; filled as they turn up."""

    def __missing__(self, code: int) -> str:
        if len(self) > 4096:
            self.clear()
        shown = self[code] = _shown(chr(code))
        return shown


def _shown(char: str) -> str:
    if char == "\t":
        return char
    kind = unicodedata.category(char)
    if kind == "Cc":
        return "" if char == "\x1b" else "."
    if kind == "Cf" or _SELECTOR.match(char):
        return ""
    if kind == "Cs":
        return "\ufffd"
    return " " if kind in ("Zl", "Zp", "Zs") else char


_CLEANED: Final = _Cleaned()


def clean(text: str) -> str:
    """Text without escapes in it: controls become dots, invisible characters go, tabs are blanks."""
    if text.isprintable() and (text.isascii() or not _CARE.search(text)):
        return text
    return _STACK.sub(r"\1", text.translate(_CLEANED)).expandtabs(8)


def strip_ansi(text: str) -> str:
    """Only the escapes go; the rest stays as it was."""
    text = _with_seven_bits(text)
    return ESCAPE.sub("", text) if "\x1b" in text else text


def _with_seven_bits(text: str) -> str:
    """The one-character forms of escapes (C1) as the two characters that they stand for."""
    if text.isascii() or not _C1.search(text):
        return text
    return _C1.sub(lambda match: "\x1b" + chr(ord(match[0]) - 0x40), text)


def safe_line(text: str | bytes, limit: int = DISPLAY_CHARS) -> str:
    """One harmless line of at most `limit` characters out of anything a host sent."""
    if isinstance(text, bytes):
        text = text[: limit * 8].decode("utf-8", "replace")
    elif len(text) > limit * 8:
        text = text[: limit * 8]
    if not (text.isascii() and text.isprintable()):
        text = clean(strip_ansi(text.replace("\n", " ").replace("\r", " ")))
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def ansi_spans(text: str) -> tuple[str, tuple[Span, ...]]:
    """The plain text and the colours that its SGR sequences asked for."""
    text = _with_seven_bits(text)
    if "\x1b" not in text:
        return clean(text), ()
    pen, spans, parts, length, position = _PLAIN, list[Span](), list[str](), 0, 0
    for match in ESCAPE.finditer(text):
        if match.start() > position:
            piece = clean(text[position : match.start()])
            parts.append(piece)
            length = _mark(spans, length, length + len(piece), pen.style)
        if match["final"] == "m":
            pen = pen_after(pen, match["params"])
        position = match.end()
    parts.append(clean(text[position:]))
    _mark(spans, length, length + len(parts[-1]), pen.style)
    return "".join(parts), tuple(spans)


def _mark(spans: list[Span], start: int, end: int, style: str) -> int:
    if style and end > start:
        if spans and spans[-1][1:] == (start, style):
            start = spans.pop()[0]
        spans.append((start, end, style))
    return end


class Pen(NamedTuple):
    """The style that SGR sequences have set so far. Blinking and hidden text are not obeyed."""

    flags: tuple[str, ...] = ()
    colour: str = ""
    background: str = ""
    style: str = ""


_PLAIN: Final = Pen()


@lru_cache(maxsize=1024)
def pen_after(pen: Pen, params: str) -> Pen:
    """The pen after one SGR sequence."""
    codes = [int(part) if part.isdecimal() else 0 for part in re.split("[;:]", params)[:32]]
    while codes:
        pen = _take(pen, codes)
    background = f"on {pen.background}" if pen.background else ""
    return pen._replace(style=" ".join(filter(None, (*pen.flags, pen.colour, background))))


def _take(pen: Pen, codes: list[int]) -> Pen:
    code = codes.pop(0)
    if code == 0:
        return _PLAIN
    if code in _FLAGS:
        return pen._replace(flags=tuple(dict.fromkeys((*pen.flags, _FLAGS[code]))))
    if code in _FLAGS_OFF:
        return pen._replace(flags=tuple(flag for flag in pen.flags if flag not in _FLAGS_OFF[code]))
    if code in (38, 39) or 30 <= code <= 37 or 90 <= code <= 97:
        return pen._replace(colour=_colour(code, codes))
    if code in (48, 49) or 40 <= code <= 47 or 100 <= code <= 107:
        return pen._replace(background=_colour(code - 10, codes))
    return pen


def _colour(code: int, codes: list[int]) -> str:
    if code == 39:
        return ""
    if code == 38:
        return _extended(codes)
    return _COLOURS[code - 30] if code < 40 else "bright_" + _COLOURS[code - 90]


def _extended(codes: list[int]) -> str:
    """38;5;N and 38;2;R;G;B; anything else is no colour and its numbers are spent."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        return _indexed(codes.pop(0))
    if kind == 2 and len(codes) >= 3:
        red, green, blue = (min(255, codes.pop(0)) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    codes.clear()
    return ""


def _indexed(index: int) -> str:
    if index < 16:
        return _COLOURS[index % 8] if index < 8 else "bright_" + _COLOURS[index - 8]
    if index < 232:
        steps = (index - 16) // 36, (index - 16) // 6 % 6, (index - 16) % 6
        red, green, blue = (55 + 40 * step if step else 0 for step in steps)
        return f"#{red:02x}{green:02x}{blue:02x}"
    grey = min(255, 8 + 10 * (index - 232))
    return f"#{grey:02x}{grey:02x}{grey:02x}"
