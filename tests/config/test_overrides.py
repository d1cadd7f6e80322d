from __future__ import annotations

import pytest

from cockpit.config.overrides import override_text
from cockpit.config.profile import parse_profile


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("vllm.max_model_len", 8192, "vllm.max_model_len=8192"),
        ("vllm.gpu_memory_utilization", 0.85, "vllm.gpu_memory_utilization=0.85"),
        ("vllm.enforce_eager", True, "vllm.enforce_eager=true"),
        ("vllm.dtype", "bfloat16", "vllm.dtype=bfloat16"),
        ("vllm.args", ["--a", 'b "c", d'], 'vllm.args=["--a", "b \\"c\\", d"]'),
        ("env.set.X", "a=b", "env.set.X=a=b"),
    ],
)
def test_a_patch_travels_as_text_and_arrives_as_it_was(key: str, value: object, text: str) -> None:
    assert override_text(key, value) == text
    profile = parse_profile("kind = 'vllm'\n[vllm]\nmodel = 'm'\n", overrides=[text])
    node: object = profile.model_dump(by_alias=True)
    for part in key.split("."):
        assert isinstance(node, dict)
        node = node[part]
    assert node == (tuple(value) if isinstance(value, list) else value)
