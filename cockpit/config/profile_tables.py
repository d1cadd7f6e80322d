"""The tables that every kind of profile may have."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cockpit.config.fields import (
    Addresses,
    CardCount,
    Cards,
    Count,
    DurationOrOff,
    DurationS,
    Filled,
    Flag,
    Globs,
    MoneyAmount,
    Number,
    PathOrUrl,
    Pattern,
    Port,
    Positive,
    Script,
    SizeMib,
    Table,
    Texts,
    VariableNames,
    Variables,
    VersionCondition,
    VersionConditions,
)


class GpusTable(Table):
    """Which cards the run reserves. Without this table it reserves none and CUDA_VISIBLE_DEVICES is left alone."""

    count: CardCount | None = Field(
        default=None, description='How many, or "all"; 1 when nothing is said'
    )
    index: Cards | None = Field(default=None, description="Exactly these cards")
    min_free_mib: SizeMib | None = Field(
        default=None, alias="min_free", description="Memory that must be free on each card"
    )
    wait_s: DurationS | None = Field(
        default=None, alias="wait", description="How long to queue for them"
    )
    share: Flag = Field(default=False, description="Take cards that other runs use too")

    @property
    def wanted(self) -> int | Literal["all"]:
        """The number of cards."""
        if self.index is not None:
            return len(self.index)
        return 1 if self.count is None else self.count


class CodeTable(Table):
    """What is sent to the host before the run starts: git's own list of files, less .cockpitignore."""

    path: Filled = Field(
        default=".",
        description="The folder on this computer; its files go into `cwd` on the host",
    )
    git: Flag = Field(
        default=True,
        description="Let git say which files there are; false takes all that .cockpitignore leaves",
    )
    max_size_mib: SizeMib = Field(
        default=1024, alias="max_size", description="More than this is not sent without asking"
    )
    max_files: Positive = Field(
        default=20_000, description="More files are not sent without asking"
    )
    on_conflict: Literal["refuse", "replace"] = Field(
        default="refuse",
        description="When a file there is not as we sent it: start nothing, or replace it and keep it in"
        " .cockpit-code/kept",
    )


class EnvTable(Table):
    """The environment: a Python environment by its path, variables, secrets."""

    conda: Filled | None = Field(
        default=None, description="Path of a conda environment on the host"
    )
    venv: Filled | None = Field(
        default=None, description="Path of a virtual environment on the host"
    )
    uv: Filled | None = Field(
        default=None, description="Path of a uv project on the host (its .venv)"
    )
    variables: Variables = Field(default={}, alias="set", description="Variables of the run")
    file: Filled | None = Field(default=None, description="A .env file on this computer")
    secrets: VariableNames = Field(
        default=(),
        description="Names; values come from this computer's environment or keyring, on stdin",
    )


class ReadyTable(Table):
    """When the run counts as ready, and when its start counts as stuck."""

    http: PathOrUrl | None = Field(
        default=None, description="A path of the run's own port that answers 200"
    )
    port: Port | None = None
    log: Pattern | None = Field(
        default=None, description="A regular expression for a line of the log"
    )
    no_progress_s: DurationS | None = Field(
        default=None,
        alias="no_progress",
        description="Time without a sign of life after which it is stuck",
    )


class MetricsTable(Table):
    """Where the run serves Prometheus metrics."""

    url: PathOrUrl = "/metrics"
    port: Port | None = None


class WatchTable(Table):
    """What is watched; false turns a watch off."""

    oom: Flag = True
    leak: Flag = True
    stall_s: DurationOrOff = Field(
        default=900.0, alias="stall", description="Silence that counts as a stall"
    )
    idle_s: DurationOrOff = Field(
        default=1200.0, alias="idle", description="Idle cards that cost money"
    )


class StopTable(Table):
    """The stop ladder: INT, this long, TERM, that long, KILL."""

    int_s: DurationS = Field(default=15.0, alias="int")
    term_s: DurationS = Field(default=10.0, alias="term")


class RestartTable(Table):
    """Whether the run is started again when it ends."""

    on: Literal["never", "on-failure", "always", "on-lost"] = "never"
    max: Count = 3
    backoff_s: DurationS = Field(default=30.0, alias="backoff")
    resume_args: Texts = Field(default=(), description="Added to the arguments of each restart")


class BudgetTable(Table):
    """What the run may cost."""

    max_cost: MoneyAmount | None = None
    max_hours: Number | None = None
    action: Literal["notify", "stop"] = "notify"


class NeedsTable(Table):
    """What the host must have."""

    driver: VersionCondition | None = None
    cuda: VersionCondition | None = None
    vram_mib: SizeMib | None = Field(default=None, alias="vram")
    disk_mib: SizeMib | None = Field(default=None, alias="disk")
    python: VersionConditions = {}


class LogTable(Table):
    """How much of the log is kept on the host."""

    max_mib: SizeMib = Field(default=512, alias="max")


class FetchTable(Table):
    """Files that are brought back when the run ends."""

    globs: Globs = Field(
        description="Files below `cwd`; `**` is any number of folders, and a folder that matches is taken whole"
    )
    when: Literal["success", "failure", "always"] = "success"
    into: Filled = Field(
        default="fetched",
        description="Folder on this computer; each run has one of its own name in it",
    )
    max_size_mib: SizeMib = Field(
        default=10_240, alias="max_size", description="More than this is not fetched"
    )


class HooksTable(Table):
    """Shell commands: before and after run on the host, on_incident and on_end on this computer."""

    before: Script | None = None
    after: Script | None = None
    on_incident: Script | None = None
    on_end: Script | None = None


class NotifyTable(Table):
    """Whom to tell, as Apprise addresses."""

    urls: Addresses = ()
