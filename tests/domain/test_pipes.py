from __future__ import annotations

import pytest

from cockpit.domain.pipes import hides_the_exit_code


@pytest.mark.parametrize(
    ("argv", "hides"),
    [
        (("sh", "-c", "python train.py | tee log"), True),
        (("/bin/bash", "-lc", "python train.py 2>&1 |& tee -a log\n"), True),
        (("sh", "-c", "python train.py \\\n  | /usr/bin/tee log", "name"), True),
        (("bash", "-c", "set -o pipefail; python train.py | tee log"), False),
        (("bash", "-o", "pipefail", "-c", "python train.py | tee log"), False),
        (("sh", "-c", "pip freeze | tee packages; python train.py"), False),
        (("sh", "-c", "echo 'a | tee b'"), False),
        (("sh", "-c", "python train.py # | tee log"), False),
        (("sh", "-c", "python train.py | grep tee"), False),
        (("python", "-c", "x | tee"), False),
        (("sh", "-c"), False),
        (("sh", "-c", ""), False),
    ],
)  # fmt: skip
def test_a_pipe_into_tee_at_the_end_hides_the_code(argv: tuple[str, ...], hides: bool) -> None:
    assert hides_the_exit_code(argv) is hides
