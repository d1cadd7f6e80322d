"""Run profiles: TOML that says what to run, where, with which cards, and what to watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, PrivateAttr, ValidationError

from cockpit.config import kinds
from cockpit.config import profile_tables as tables
from cockpit.config.document import Document, parse_document, read_document
from cockpit.config.fields import Filled, Forwards, Name, Names, Positive, Table, Text
from cockpit.config.overrides import apply_overrides
from cockpit.config.paths import Home
from cockpit.config.profile_checks import check_document, prepare_document
from cockpit.config.profile_files import ProfileFile, find_profiles, resolve_profile
from cockpit.config.profile_problems import report_errors
from cockpit.errors import ProfileError

__all__ = [
    "Kind", "Profile", "ProfileFile", "find_profiles", "load_profile", "parse_again",
    "parse_profile", "resolve_profile", "takes",
]  # fmt: skip

Kind: TypeAlias = Literal[
    "command", "torchrun", "accelerate", "deepspeed", "megatron", "colossalai", "paddle", "yolo",
    "vllm", "sglang", "tgi", "trtllm", "ollama",
]  # fmt: skip


class Profile(Table):
    """A run profile. Field names carry their units; TOML keys are their aliases."""

    name: Name = Field(description="The run's name; the file's name when not said")
    kind: Kind
    description: Text = Field(default="", description="One line for the list of profiles")
    hosts: Names = Field(default=(), description="Candidates; the first with room is taken")
    nodes: Positive | None = Field(
        default=None, description="Run on this many hosts of `from` at once"
    )
    from_hosts: Names = Field(default=(), alias="from")
    cwd: Filled = Field("~", description="Working folder on the host")
    tags: Names = Field(
        default=(), description="Labels; without hosts or from, the hosts that bear them"
    )

    command: kinds.CommandTable | None = None
    torchrun: kinds.TorchrunTable | None = None
    accelerate: kinds.AccelerateTable | None = None
    deepspeed: kinds.DeepspeedTable | None = None
    megatron: kinds.MegatronTable | None = None
    colossalai: kinds.ColossalaiTable | None = None
    paddle: kinds.PaddleTable | None = None
    yolo: kinds.YoloTable | None = None
    vllm: kinds.VllmTable | None = None
    sglang: kinds.SglangTable | None = None
    tgi: kinds.TgiTable | None = None
    trtllm: kinds.TrtllmTable | None = None
    ollama: kinds.OllamaTable | None = None

    gpus: tables.GpusTable | None = None
    code: tables.CodeTable | None = None
    env: tables.EnvTable = tables.EnvTable()
    ready: tables.ReadyTable | None = None
    forward: Forwards = Field(default={}, description="Port of this computer = port of the host")
    metrics: tables.MetricsTable | None = None
    watch: tables.WatchTable = tables.WatchTable()
    stop: tables.StopTable = tables.StopTable()
    restart: tables.RestartTable = tables.RestartTable()
    budget: tables.BudgetTable | None = None
    needs: tables.NeedsTable | None = None
    log: tables.LogTable = tables.LogTable()
    fetch: tables.FetchTable | None = None
    hooks: tables.HooksTable = tables.HooksTable()
    notify: tables.NotifyTable = tables.NotifyTable()

    _path: Path | None = PrivateAttr(None)
    _base_dir: Path | None = PrivateAttr(None)
    _text: str = PrivateAttr("")
    _file_name: str = PrivateAttr("")
    _document: Mapping[str, object] = PrivateAttr(default_factory=dict)
    _overrides: tuple[str, ...] = PrivateAttr(())

    @property
    def text(self) -> str:
        """The TOML that it was read from, without what the command line changed."""
        return self._text

    @property
    def document(self) -> Mapping[str, object]:
        """What it says, key by key as TOML has it, with what the command line changed."""
        return self._document

    @property
    def overrides(self) -> tuple[str, ...]:
        """What the command line changed."""
        return self._overrides

    @property
    def file_name(self) -> str:
        """The name that the run has where the text says none."""
        return self._file_name

    @property
    def path(self) -> Path | None:
        """The file it came from."""
        return self._path

    @property
    def base_dir(self) -> Path:
        """What relative paths of this computer ([code] path, [env] file) start from.

        The folder of a profile that was given by its path, else the working folder.
        """
        return self._base_dir or Path.cwd()

    @property
    def candidate_hosts(self) -> tuple[str, ...]:
        """Hosts by name; empty when tags choose, or every host will do."""
        return self.from_hosts or self.hosts

    @property
    def chosen_by_tags(self) -> bool:
        return bool(self.tags) and not self.candidate_hosts

    @property
    def is_server(self) -> bool:
        return self.kind in kinds.SERVER_KINDS


def load_profile(source: str | Path, home: Home, overrides: Sequence[str] = ()) -> Profile:
    """The profile of that path or name, with `key=value` overrides. Raises ProfileError with every problem."""
    found = resolve_profile(source, home)
    try:
        document = read_document(found.path, ProfileError)
    except FileNotFoundError as error:
        raise ProfileError("profile_missing", path=str(found.path)) from error
    profile = _profile(document, found.path.stem, overrides)
    profile._path = found.path
    profile._base_dir = found.path.absolute().parent if found.origin == "file" else None
    return profile


def parse_profile(
    text: str, *, name: str = "profile", file: str = "profile.toml", overrides: Sequence[str] = ()
) -> Profile:
    """A profile of its text. Raises ProfileError with every problem."""
    return _profile(parse_document(text.encode(), file, ProfileError), name, overrides)


def parse_again(
    text: str, *, name: str, file: str, base_dir: Path | None, overrides: Sequence[str] = ()
) -> Profile:
    """A profile of an earlier day, whose relative paths start where they started then. Raises ProfileError."""
    profile = parse_profile(text, name=name, file=file, overrides=overrides)
    profile._base_dir = base_dir
    return profile


def takes(profile: Profile, overrides: Sequence[str]) -> bool:
    """Whether it would still be a profile with these changes."""
    document = Document(profile.file_name, deepcopy(dict(profile.document)))
    apply_overrides(document, Profile, overrides)
    check_document(document)
    if document.problems:
        return False
    try:
        Profile.model_validate({"name": profile.file_name, **document.data})
    except ValidationError:
        return False
    return True


def _profile(document: Document, name: str, overrides: Sequence[str]) -> Profile:
    prepare_document(document)
    apply_overrides(document, Profile, overrides)
    check_document(document)
    raw = {"name": name, **document.data}
    profile: Profile | None = None
    try:
        profile = Profile.model_validate(raw)
    except ValidationError as error:
        report_errors(document, Profile, error)
    if profile is None or document.problems:
        raise ProfileError(file=document.file, problems=document.sorted_problems())
    profile._text, profile._file_name = document.text, name
    profile._document, profile._overrides = document.data, tuple(overrides)
    return profile
