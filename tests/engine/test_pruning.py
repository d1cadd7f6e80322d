"""NVIDIA's binding, cut to what the probe calls: whole definitions, its licence, and nothing rewritten."""

from __future__ import annotations

import re

import pytest

from cockpit.engine.programs import load_program
from cockpit.engine.pruning import nvml_names, pruned

SOURCE = b'''\
# Copyright someone
from ctypes import *
from functools import wraps
import sys
import threading
import string, os

KEPT = 1
NVML_ERROR_ODD = 7
ALIAS = KEPT
UNUSED = [
    1,
]
nvmlLib = threading.Lock()

@wraps
@other
def nvmlUsed(handle):
    """Text that begins a line:
    def nvmlNot(): """
    return _helper(ALIAS, sys)

def _helper(value, sys):
    return value

def nvmlUnused():
    return string

class Gone(Structure):
    pass

def other(call): return call
extract()
'''


def test_what_the_roots_reach_is_kept_and_the_rest_goes() -> None:
    kept = pruned(SOURCE, ["nvmlUsed"]).decode()
    for word in ("# Copyright", "from ctypes import *", "wraps", "import sys", "ALIAS = KEPT", "KEPT = 1",
                 "NVML_ERROR_ODD",
                 "@wraps\n@other\ndef nvmlUsed", "def _helper", "def other", "extract()"):  # fmt: skip
        assert word in kept, word
    for word in ("nvmlUnused", "Gone", "UNUSED", "import string"):
        assert word not in kept, word
    lines = [line for line in kept.splitlines() if line]
    assert lines == [line for line in SOURCE.decode().splitlines() if line in lines], "unchanged"


@pytest.mark.parametrize("source", [b"def broken(:\n", b"", b"x = '''\ndef a(): '''\n"])
def test_what_cannot_be_cut_stays_whole(source: bytes) -> None:
    assert pruned(source, ["nvmlUsed"]) in (source, b"")


def test_names_are_those_of_the_binding() -> None:
    assert nvml_names(b"nvml.nvmlInit() NVML_SUCCESS c_nvmlMemory_t other") == {
        "nvml",
        "nvmlInit",
        "NVML_SUCCESS",
    }


def test_the_installed_binding_has_every_name_that_the_probe_uses() -> None:
    program = load_program("probe")
    sources = dict(program.sources)
    own = b"".join(text for module, text in sources.items() if module != "pynvml")
    used = {name.decode() for name in re.findall(rb"nvml\.(\w+)", own)}
    part = pruned(sources["pynvml"], nvml_names(own) | used).decode()
    defined = set(re.findall(r"^(?:def|class)\s+(\w+)|^(\w+)\s*=", part, re.MULTILINE))
    names = {name for pair in defined for name in pair if name}
    assert used - names <= {"byref"}, "byref comes from ctypes"
    assert len(part) < len(sources["pynvml"]) / 5
    assert part.startswith("#####\n# Copyright (c)")
