from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from cockpit.config.paths import Home
from cockpit.config.profile import Profile, find_profiles, load_profile, parse_profile, takes
from cockpit.config.profile_files import SHIPPED_DIR
from cockpit.errors import ExitCode, Problem, ProfileError
from cockpit.i18n.problem_text import problem_text

MINIMAL = "kind = 'command'\n[command]\nargv = ['true']\n"

FULL = """\
name = "qwen7b-lora"
kind = "accelerate"
hosts = ["a100-1"]
cwd = "~/qwen"
tags = ["sft"]

[accelerate]
script = "train.py"
args = ["--lr", "1e-4"]
num_processes = 2

[gpus]
count = 2
min_free = "20 GiB"
wait = "2h"
share = false

[code]
path = "."

[env]
conda = "/root/miniconda3/envs/llm"
set = { HF_HOME = "/data/hf", N = 4, X = 0.5 }
file = ".env"
secrets = ["HF_TOKEN"]

[ready]
http = "/health"
no_progress = "10m"

[forward]
8000 = 8001

[metrics]
url = "/metrics"

[watch]
oom = true
leak = false
stall = "15m"
idle = false

[stop]
int = "15s"
term = "10s"

[restart]
on = "on-failure"
max = 3
backoff = "30s"
resume_args = ["--resume", "auto"]

[budget]
max_cost = "5 USD"
max_hours = 12
action = "notify"

[needs]
driver = ">=550"
vram = "24 GiB"
disk = "100 GiB"
python = { torch = ">=2.4" }

[log]
max = "512 MiB"

[fetch]
globs = ["out/**/*.safetensors"]
when = "success"

[hooks]
before = "nvidia-smi -L"

[notify]
urls = ["ntfy://my-topic"]
"""


def problems(text: str, *overrides: str) -> list[Problem]:
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, file="x.toml", overrides=overrides)
    assert caught.value.exit_code is ExitCode.CONFIG
    return list(caught.value.problems)


def found(text: str, *overrides: str) -> list[tuple[str, int | None, str]]:
    return [(p.code, p.line, p.key) for p in problems(text, *overrides)]


def test_every_table_of_the_design_is_read() -> None:
    profile = parse_profile(FULL)
    assert (profile.name, profile.kind, profile.hosts) == ("qwen7b-lora", "accelerate", ("a100-1",))
    assert profile.accelerate is not None
    assert profile.accelerate.args == ("--lr", "1e-4")
    assert profile.gpus is not None
    assert (profile.gpus.wanted, profile.gpus.min_free_mib, profile.gpus.wait_s) == (2, 20480, 7200)
    assert profile.env.conda == "/root/miniconda3/envs/llm"
    assert profile.env.variables == {"HF_HOME": "/data/hf", "N": "4", "X": "0.5"}
    assert profile.env.secrets == ("HF_TOKEN",)
    assert profile.ready is not None
    assert (profile.ready.http, profile.ready.no_progress_s) == ("/health", 600)
    assert profile.forward == {8000: 8001}
    assert (profile.watch.leak, profile.watch.stall_s, profile.watch.idle_s) == (False, 900, None)
    assert (profile.stop.int_s, profile.stop.term_s) == (15, 10)
    assert (profile.restart.on, profile.restart.backoff_s) == ("on-failure", 30)
    assert profile.budget is not None
    assert profile.budget.max_cost == (5.0, "USD")
    assert profile.needs is not None
    assert (profile.needs.vram_mib, profile.needs.disk_mib) == (24576, 102400)
    assert profile.needs.python == {"torch": ">=2.4"}
    assert profile.log.max_mib == 512
    assert profile.fetch is not None
    assert profile.fetch.globs == ("out/**/*.safetensors",)
    assert profile.hooks.before == "nvidia-smi -L"
    assert profile.notify.urls == ("ntfy://my-topic",)


def test_the_defaults_of_a_small_profile() -> None:
    profile = parse_profile(MINIMAL, name="small")
    assert (profile.name, profile.cwd, profile.gpus, profile.code) == ("small", "~", None, None)
    assert (profile.stop.int_s, profile.stop.term_s, profile.restart.on) == (15, 10, "never")
    assert (profile.watch.oom, profile.log.max_mib) == (True, 512)


def test_a_profile_does_not_change() -> None:
    profile = parse_profile(MINIMAL)
    with pytest.raises(ValidationError):
        profile.name = "other"


def test_all_mistakes_are_told_with_line_and_key() -> None:
    text = """\
name = "qwen"
kind = "vllm"
[vllm]
model = "m"
prot = 8000
[gpus]
min_fre = "20 GiB"
count = 0
[stop]
int = "15"
[env]
set = { A = true, "B C" = "x" }
secrets = ["OK", "not ok"]
[forward]
8000 = 0
http = 80
"""
    assert found(text) == [
        ("unknown_key", 5, "vllm.prot"),
        ("unknown_key", 7, "gpus.min_fre"),
        ("out_of_range", 8, "gpus.count"),
        ("time_needs_unit", 10, "stop.int"),
        ("bad_variable", 12, 'env.set."B C"'),
        ("wrong_type", 12, "env.set.A"),
        ("bad_variable", 13, "env.secrets[1]"),
        ("out_of_range", 15, "forward.8000"),
        ("bad_port_key", 16, "forward.http"),
    ]


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        (MINIMAL + "[gpu]\ncount = 1\n", "gpus"),
        (MINIMAL + "[gpus]\nmin_fre = '1 GiB'\n", "min_free"),
        (MINIMAL + "[gpus]\nmin-free = '1 GiB'\n", "min_free"),
        (MINIMAL.replace("argv", "arg"), "argv"),
        ("kind = 'vlm'\n", "vllm"),
        ("kind = 'vllm'\n[vllm]\nmodel='m'\nmax_model_length = 1\n", "max_model_len"),
        (MINIMAL + "[restart]\non = 'onfailure'\n", "on-failure"),
        (MINIMAL + "[zzz]\n", None),
    ],
)
def test_what_was_probably_meant(text: str, suggestion: str | None) -> None:
    (meant,) = [p.facts["suggestion"] for p in problems(text) if "suggestion" in p.facts]
    assert meant == suggestion


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("missing_key", None, "kind")),
        ("kind = 'vllm'\n", ("missing_table", 1, "kind")),
        ("kind = 'vllm'\n[vllm]\n", ("missing_key", 2, "vllm.model")),
        ("kind = 'command'\n[command]\n", ("one_of_keys", 2, "command")),
        ("kind = 'command'\n[command]\nargv = []\n", ("empty", 3, "command.argv")),
        ("kind='command'\n[command]\nargv=['a']\nscript='b'\n", ("not_both", 4, "command.script")),
        ("kind='torchrun'\n[torchrun]\nscript='a'\nmodule='b'\n", ("not_both", 4, "torchrun.module")),
        (MINIMAL + "[vllm]\nmodel = 'm'\n", ("other_kind", 4, "vllm")),
        (MINIMAL + "[gpus]\ncount = 1\nindex = [0]\n", ("not_both", 6, "gpus.index")),
        (MINIMAL + "[env]\nconda = '/a'\nvenv = '/b'\n", ("not_both", 6, "env.venv")),
        ("nodes = 2\n" + MINIMAL, ("needs_key", 1, "nodes")),
        ("from = ['a']\n" + MINIMAL, ("needs_key", 1, "from")),
        ("nodes = 2\nfrom = ['a']\n" + MINIMAL, ("too_few_hosts", 2, "from")),
        (MINIMAL + "[ready]\nhttp = '/health'\n", ("needs_key", 5, "ready.http")),
        (MINIMAL + "[metrics]\n", ("needs_key", 4, "metrics")),
        (MINIMAL + "[metrics]\nurl = 'http://evil.example/'\n", ("bad_url", 5, "metrics.url")),
        (MINIMAL + "[ready]\nlog = '('\n", ("bad_pattern", 5, "ready.log")),
        (MINIMAL + "[needs]\ndriver = 'new'\n", ("bad_version", 5, "needs.driver")),
        (MINIMAL + "[budget]\nmax_cost = 5\n", ("price_needs_currency", 5, "budget.max_cost")),
        (MINIMAL + "[watch]\nstall = 15\n", ("time_needs_unit", 5, "watch.stall")),
        (MINIMAL + "[watch]\nstall = true\n", ("wrong_type", 5, "watch.stall")),
        (MINIMAL + "[fetch]\nwhen = 'always'\n", ("missing_key", 4, "fetch.globs")),
        (MINIMAL + "[gpus]\ncount = true\n", ("wrong_type", 5, "gpus.count")),
        (MINIMAL + "[gpus]\ncount = 'some'\n", ("not_one_of", 5, "gpus.count")),
        (MINIMAL + "[gpus]\nindex = [0, -1]\n", ("out_of_range", 5, "gpus.index[1]")),
        (MINIMAL + "gpus = 1\n", ("unknown_key", 4, "command.gpus")),
        ("gpus = 1\n" + MINIMAL, ("wrong_type", 1, "gpus")),
        ("name = '../x'\n" + MINIMAL, ("bad_name", 1, "name")),
        ("name = 'a\\nb'\n" + MINIMAL, ("bad_name", 1, "name")),
        ('cwd = "a\\nb"\n' + MINIMAL, ("control_character", 1, "cwd")),
        ("kind='command'\n[command]\nargv=[\"a\\u0000\"]\n", ("control_character", 3, "command.argv[0]")),
    ],
)  # fmt: skip
def test_one_mistake_and_where_it_stands(text: str, expected: tuple[str, int, str]) -> None:
    assert found(text) == [expected]


def test_an_option_of_a_server_may_be_spelled_as_on_its_command_line() -> None:
    text = "kind = 'vllm'\n[vllm]\nmodel = 'm'\nmax-model-len = '32k'\n"
    profile = parse_profile(text, overrides=["vllm.gpu-memory-utilization=0.8"])
    assert profile.vllm is not None
    assert (profile.vllm.max_model_len, profile.vllm.gpu_memory_utilization) == ("32k", 0.8)
    assert found(text + "max_model_len = 1\nport-x = 1\n") == [
        ("not_both", 5, "vllm.max_model_len"),
        ("unknown_key", 6, "vllm.port_x"),
    ]


@pytest.mark.parametrize("kind", ["command", "vllm"])
def test_the_kind_is_asked_for_by_its_words(kind: str) -> None:
    (problem,) = problems("name = 'x'\n")
    assert kind in str(problem.facts["hint"])


# -- overrides ----------------------------------------------------------------------------------


def test_overrides_are_typed_by_the_schema_and_not_by_their_looks() -> None:
    profile = parse_profile(
        MINIMAL,
        overrides=[
            "description=007",
            "command.argv=['x', 'y z']",
            "hosts=a,b",
            "tags=one",
            "gpus.count=all",
            "gpus.min_free=20 GiB",
            "gpus.share=true",
            "env.set.A=1e5",
            "env.set.B=false",
            'env.set."C"==x=',
            "watch.stall=false",
            "forward.80=8080",
            'restart.resume_args=["--resume", "auto"]',
            "stop={int = '1s'}",
        ],
    )
    assert profile.description == "007"
    assert profile.command is not None
    assert profile.command.argv == ("x", "y z")
    assert (profile.hosts, profile.tags) == (("a", "b"), ("one",))
    assert profile.gpus is not None
    assert (profile.gpus.count, profile.gpus.min_free_mib, profile.gpus.share) == (
        "all",
        20480,
        True,
    )
    assert profile.env.variables == {"A": "1e5", "B": "false", "C": "=x="}
    assert profile.watch.stall_s is None
    assert profile.forward == {80: 8080}
    assert profile.restart.resume_args == ("--resume", "auto")
    assert profile.stop.int_s == 1


@pytest.mark.parametrize(
    ("gpus", "words"), [("count = 'al'", "none of a number, all. all?"), ("count = 0", "1")]
)
def test_a_wrong_count_is_told_with_what_it_may_be(gpus: str, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(MINIMAL + f"[gpus]\n{gpus}\n")
    (problem,) = caught.value.problems
    assert words in problem_text(problem.code, problem.facts)


def test_an_override_wins_over_the_file_and_the_last_over_the_first() -> None:
    text = MINIMAL + "[gpus]\ncount = 2\nmin_free = '1 GiB'\n"
    profile = parse_profile(text, overrides=["gpus.count=3", "gpus.count=4"])
    assert profile.gpus is not None
    assert (profile.gpus.count, profile.gpus.min_free_mib) == (4, 1024)


def test_an_override_can_mend_what_the_file_has_wrong() -> None:
    text = MINIMAL + "[gpus]\ncount = 'x'\n"
    assert parse_profile(text, overrides=["gpus.count=1"]).gpus is not None


@pytest.mark.parametrize(
    ("override", "code", "key"),
    [
        ("gpus.cuont=2", "unknown_key", "gpus.cuont"),
        ("gpus.count=two", "not_one_of", "gpus.count"),
        ("stop.int=15", "time_needs_unit", "stop.int"),
        ("nonsense", "bad_override", "nonsense"),
        ("=1", "bad_override", '"=1"'),
        ("a..b=1", "bad_override", '"a..b=1"'),
        ("name.x=1", "not_a_table", "name.x"),
        ("command.argv.x=1", "not_a_table", "command.argv.x"),
        ("gpus.count=" + "9" * 5000, "not_one_of", "gpus.count"),
    ],
)
def test_a_mistake_of_an_override_is_not_the_file_s(override: str, code: str, key: str) -> None:
    (problem,) = problems("name = 'x'\n" + MINIMAL, override)
    assert (problem.code, problem.key, problem.file, problem.line) == (code, key, "--set", None)


# -- where profiles are ---------------------------------------------------------------------------


def put(folder: Path, name: str, text: str = MINIMAL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_a_name_is_looked_up_in_the_home_and_then_among_the_shipped(home: Home) -> None:
    assert load_profile("vllm", home).path == SHIPPED_DIR / "vllm.toml"
    own = put(home.profiles_dir, "vllm")
    assert load_profile("vllm", home).path == own
    names = [(profile.name, profile.origin) for profile in find_profiles(home)]
    assert names[0] == ("vllm", "home")
    assert ("vllm", "shipped") not in names
    assert ("torchrun", "shipped") in names


def test_a_path_has_a_slash_or_ends_in_toml(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home.profiles_dir, "mine", MINIMAL + "[stop]\nint = '1s'\n")
    put(tmp_path, "mine")
    monkeypatch.chdir(tmp_path)
    assert load_profile("mine", home).stop.int_s == 1
    assert load_profile("mine.toml", home).stop.int_s == 15
    assert load_profile("./mine.toml", home).name == "mine"
    assert load_profile(tmp_path / "mine.toml", home).base_dir == tmp_path


def test_local_paths_start_at_the_file_that_was_named_else_here(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "sub", "p")
    put(home.profiles_dir, "named")
    assert load_profile("sub/p.toml", home).base_dir == tmp_path / "sub"
    assert load_profile("named", home).base_dir == tmp_path


@pytest.mark.parametrize(
    ("source", "code"),
    [("vlm", "profile_unknown"), ("./vllm", "profile_missing"), ("no.toml", "profile_missing")],
)
def test_a_profile_that_is_not_there(home: Home, source: str, code: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(source, home)
    assert caught.value.code == code
    assert caught.value.exit_code is ExitCode.CONFIG


def test_a_file_that_is_no_name_is_not_listed(home: Home) -> None:
    put(home.profiles_dir, "-x")
    put(home.profiles_dir, "good")
    (home.profiles_dir / "dir.toml").mkdir()
    assert [p.name for p in find_profiles(home) if p.origin == "home"] == ["good"]


@pytest.mark.parametrize("path", sorted(SHIPPED_DIR.glob("*.toml")), ids=lambda path: path.stem)
def test_a_shipped_profile_is_without_a_mistake(path: Path, home: Home) -> None:
    profile = load_profile(path, home)
    assert profile.name == path.stem
    assert profile.description
    assert path.read_text().startswith("# ")


def test_a_dozen_profiles_are_shipped() -> None:
    assert len(list(SHIPPED_DIR.glob("*.toml"))) >= 12


def test_a_profile_is_made_by_its_toml_keys() -> None:
    with pytest.raises(ValidationError):
        Profile.model_validate({"name": "x", "kind": "command", "gpus": {"min_free_mib": 1}})


def test_a_profile_knows_what_it_was_made_of_and_whether_a_change_would_fit() -> None:
    text = 'kind = "vllm"\n[vllm]\nmodel = "m"\nmax-model-len = 8192\n'
    profile = parse_profile(text, overrides=("gpus.count=2",))
    assert profile.document["vllm"] == {"model": "m", "max_model_len": 8192}
    assert profile.document["gpus"] == {"count": 2} and profile.overrides == ("gpus.count=2",)
    assert takes(profile, ("vllm.max_model_len=4096",))
    assert not takes(profile, ("vllm.max_model_len=never",))
    assert not takes(profile, ("gpus.index=[0]",)), "it counts them already"
    assert profile.document["gpus"] == {"count": 2}, "trying changes nothing"
