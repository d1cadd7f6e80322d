from __future__ import annotations

import pytest

from cockpit.domain.needs import meets


@pytest.mark.parametrize(
    ("version", "condition", "verdict"),
    [
        ("550.54.15", ">=550", True),
        ("535.183.01", ">=550", False),
        ("12.4", "12.4", True),
        ("12.10", ">=12.4", True),
        ("2.4.0+cu121", ">=2.4,<3", True),
        ("2.5.0.dev20240901+cu121", ">=2.4", True),
        ("3.0", ">= 2.4 , < 3", False),
        ("2.4.1", "==2.4.*", True),
        ("2.4.1", "!=2.4.1", False),
        (None, ">=1", None),
        ("", ">=1", None),
        ("a build of ours", ">=1", None),
        ("1.0", ">=*", None),
    ],
)
def test_versions_against_conditions(
    version: str | None, condition: str, verdict: bool | None
) -> None:
    assert meets(version, condition) is verdict
