"""The options of a run in its own profile: a key of its kind's table, or a word in a list of arguments.

An edit is a patch of dotted profile keys; an argument is changed by giving its whole list anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Profile: TypeAlias = Mapping[str, object]
Form: TypeAlias = Literal["key", "pair", "joined", "plain", "flag"]
"""A table's key, `--x 8`, `--x=8`, `x=8`, or `--x` without a value."""

_LISTS: Final = ("args", "argv")


@dataclass(frozen=True, slots=True)
class Option:
    """Where an option stands and what it says there."""

    key: str
    """Dotted key of the profile: of the option itself, or of the list that it stands in."""
    name: str
    """As it is written."""
    value: object
    form: Form
    position: int = 0

    @property
    def number(self) -> float | None:
        """Its value as a number; None for words and flags."""
        if isinstance(self.value, bool):
            return None
        try:
            return float(self.value) if isinstance(self.value, int | float | str) else None
        except ValueError:
            return None

    @property
    def whole(self) -> int | None:
        number = self.number
        return int(number) if number is not None and number.is_integer() else None

    @property
    def is_on(self) -> bool:
        if isinstance(self.value, str):
            return self.value.lower() in ("true", "1", "yes", "on")
        return self.form == "flag" or self.value is True

    @property
    def bare(self) -> str:
        """Its name without dashes and the path before it: `--data.batch-size` is `batch_size`."""
        return plain_name(self.name)


def plain_name(name: str) -> str:
    return name.lstrip("-").rpartition(".")[2].replace("-", "_")


@dataclass(slots=True)
class ProfileOptions:
    """A profile with the changes that were made to it so far; `patch` holds them."""

    profile: Profile
    patch: dict[str, object] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        kind = self.profile.get("kind")
        return kind if isinstance(kind, str) else ""

    def value(self, key: str) -> object | None:
        """What a dotted key says, changes included; None where it is not set."""
        if key in self.patch:
            return self.patch[key]
        found: object = self.profile
        for part in key.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return None
            found = found[part]
        return found

    def words(self, key: str) -> list[str]:
        """A list of arguments, as it would be now."""
        found = self.value(key)
        return [str(word) for word in found] if isinstance(found, list | tuple) else []

    def find(self, names: Sequence[str]) -> Option | None:
        """The option under the first of its plain names that the profile uses."""
        for name in names:
            found = self._in_table(name) or self._in_lists(name)
            if found is not None:
                return found
        return None

    def set(self, option: Option, value: object) -> None:
        """Give an option another value where it stands."""
        if option.form == "key":
            self.patch[option.key] = value
            return
        words, text = self.words(option.key), word_of(value, option)
        if option.form == "pair":
            words[option.position + 1] = text
        elif option.form in ("joined", "plain"):
            words[option.position] = f"{option.name}={text}"
        self.patch[option.key] = words

    def add(self, like: Option | None, name: str, value: object) -> None:
        """Append an option, spelt as its neighbour is."""
        key = self._list_for(like)
        if key is None:
            return
        form = like.form if like is not None else "pair"
        spelt = (
            name.replace("_", "-") if like is not None and "-" in like.name.lstrip("-") else name
        )
        text = word_of(value, like)
        if form == "plain":
            added = [f"{spelt}={text}"]
        elif form == "joined":
            added = [f"--{spelt}={text}"]
        else:
            added = [f"--{spelt}", *([] if value is None else [text])]
        self.patch[key] = [*self.words(key), *added]

    def put(self, key: str, value: object) -> None:
        self.patch[key] = value

    def _list_for(self, like: Option | None) -> str | None:
        if like is not None and like.form != "key":
            return like.key
        if self.kind in ("", "command"):
            return None
        return f"{self.kind}.args"

    def _in_table(self, name: str) -> Option | None:
        key = f"{self.kind}.{name}"
        value = self.value(key)
        if value is None or isinstance(value, list | tuple | Mapping):
            return None
        return Option(key, name, value, "key")

    def _in_lists(self, name: str) -> Option | None:
        for part in _LISTS:
            key = f"{self.kind}.{part}"
            found = _in_words(key, self.words(key), name)
            if found is not None:
                return found
        return None


def _in_words(key: str, words: Sequence[str], name: str) -> Option | None:
    """The last one counts, as it does for nearly every parser of arguments."""
    for position in range(len(words) - 1, -1, -1):
        word = words[position]
        head, equals, tail = word.partition("=")
        if plain_name(head) != name or head.startswith("---"):
            continue
        is_dashed = head.startswith("-")
        if equals:
            form: Form = "joined" if is_dashed else "plain"
            return Option(key, head, tail, form, position)
        if is_dashed:
            after = words[position + 1] if position + 1 < len(words) else None
            if after is None or (after.startswith("-") and not _is_number(after)):
                return Option(key, head, True, "flag", position)
            return Option(key, head, after, "pair", position)
    return None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def word_of(value: object, like: Option | None = None) -> str:
    """A value as an argument; truth as its neighbour writes it."""
    if isinstance(value, bool):
        text = "true" if value else "false"
        old = like.value if like is not None else None
        return text.capitalize() if old in ("True", "False") else text
    return f"{value:g}" if isinstance(value, float) else str(value)
