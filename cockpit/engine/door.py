"""Whether a host would still let us in: an open connection outlives the key, the account and the port behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from cockpit.domain.incident_book import Place, key_of
from cockpit.domain.incidents import Finding, Remedy
from cockpit.domain.models import HostName
from cockpit.engine.bounds import attempt, within
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.errors import (
    AuthenticationFailed,
    CockpitError,
    HostKeyChanged,
    HostUnreachable,
)
from cockpit.transport.base import HostTransport

log = logging.getLogger(__name__)

INTERVAL_S = 600.0
"""Between two tries: vast.ai was seen to rewrite authorized_keys hours after a start, with every sign still green."""
TRY_LIMIT_S = 60.0
CLOSE_LIMIT_S = 2.0
MISSES = 2
"""A refused or silent port may be a moment's matter; this many in a row are not."""

OnDoor = Callable[[CockpitError | None], None]
"""Told None when a new login succeeded, else why it did not."""


class DoorWatch:
    """Logs in anew now and then, beside a connection that stands, and says when that begins to fail."""

    def __init__(
        self,
        make_transport: Callable[[], HostTransport],
        needs_person: Callable[[], bool],
        tell: OnDoor,
        jitter: Callable[[], float],
    ) -> None:
        """`make_transport` must ask nobody. `needs_person`: whether a login here takes a typed secret."""
        self._make_transport = make_transport
        self._needs_person = needs_person
        self._tell = tell
        self._jitter = jitter
        self._opened = False
        self._misses = 0

    async def watch(self) -> None:
        """For as long as the connection stands; its owner cancels it."""
        while True:
            await asyncio.sleep(INTERVAL_S * (1 + 0.2 * self._jitter()))
            self._judge(await self._knock())

    async def _knock(self) -> CockpitError | None:
        transport = self._make_transport()
        try:
            await within(TRY_LIMIT_S, transport.connect())
        except asyncio.TimeoutError:
            return HostUnreachable(host=transport.host, why="timeout")
        except CockpitError as error:
            return error
        except Exception as error:  # the host's edge: a surprise here must not end what works
            log.exception("a second login to %s", transport.host)
            return CockpitError(host=transport.host, why=type(error).__name__)
        finally:
            await attempt(CLOSE_LIMIT_S, transport.close())
        return None

    def _judge(self, failure: CockpitError | None) -> None:
        if failure is None:
            self._opened, self._misses = True, 0
            self._tell(None)
        elif isinstance(failure, AuthenticationFailed | HostKeyChanged):
            if self._opened or not self._needs_person():
                self._tell(failure)
        elif isinstance(failure, HostUnreachable):
            self._misses += 1
            if self._misses >= MISSES:
                self._tell(failure)


def report_door(desk: IncidentDesk, host: HostName, failure: CockpitError | None) -> None:
    """An incident while new logins fail; recovered when one succeeds again."""
    finding = Finding(
        family="env",
        signature="login-refused",
        severity="warning",
        cause=_CAUSES.get(failure.code, "door_closed") if failure is not None else "door_closed",
        remedies=(Remedy("register_key"), Remedy("paste_new_address")),
    )
    if failure is not None:
        desk.report(finding, host=host)
    else:
        desk.settle(key_of(finding, Place(host, None)), "recovered")


_CAUSES = {"auth_failed": "door_key_refused", "host_key_changed": "door_key_changed"}
