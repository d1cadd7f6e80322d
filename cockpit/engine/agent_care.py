"""What an agent is asked for runs in trouble: a new supervisor, another attempt, what was noted of them."""

from __future__ import annotations

from cockpit.domain.models import RunId
from cockpit.domain.run_events import RunEvent, decode_events
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import Json, RunSpec, encode_spec
from cockpit.engine.agent import START_S, RunAgent
from cockpit.engine.agent_replies import StartReply


async def adopt(agent: RunAgent, run: RunId) -> RunRecord:
    """Give a run whose supervisor died another one. Raises RunUnknown, RunError when it has ended."""
    answer = await agent.ask("adopt", {"run": run}, limit_s=START_S)
    return agent.record_of(answer, run)


async def restart(agent: RunAgent, spec: RunSpec, attempt: int) -> StartReply:
    """Begin that attempt of a lost run, unless somebody else has. Raises LaunchFailed, NotNow."""
    fields: dict[str, Json] = {
        "spec": encode_spec(spec),
        "secrets": dict(spec.secrets),
        "attempt": attempt,
    }
    answer = await agent.ask("restart", fields, limit_s=START_S)
    return StartReply(agent.record_of(answer, spec.run), answer.get("existed") is True)


async def events_of(agent: RunAgent, run: RunId, after: int = 0) -> tuple[RunEvent, ...]:
    """What was noted of a run after the event of that number. Raises RunUnknown."""
    return decode_events((await agent.ask("events", {"run": run, "after": after})).get("events"))


async def go(agent: RunAgent, run: RunId) -> RunRecord:
    """Call a held run to begin. Raises RunUnknown."""
    return agent.record_of(await agent.ask("go", {"run": run}), run)
