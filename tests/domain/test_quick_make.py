"""The quick way makes the same values."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from cockpit.domain.models import GpuSample
from cockpit.domain.quick_make import quick_maker
from tests.builders.samples import gpu, process


def test_it_makes_equal_and_frozen_values() -> None:
    made_slowly = gpu(3, processes=(process(),))
    values = [getattr(made_slowly, field.name) for field in fields(GpuSample)]
    made = quick_maker(GpuSample)(values)
    assert made == made_slowly and hash(made) == hash(made_slowly)
    with pytest.raises(FrozenInstanceError):
        made.index = 4  # type: ignore[misc]


def test_it_wants_every_field() -> None:
    with pytest.raises(TypeError):
        quick_maker(GpuSample)([0])
