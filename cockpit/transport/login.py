"""asyncssh's questions during one handshake, answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import asyncssh
from asyncssh.public_key import SSHKeyPair

from cockpit.transport.base import SecretRequest
from cockpit.transport.credentials import Credentials
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.questions import MAX_TRIES, LoginRecord, Questions

MAX_PROMPTS = 10
BANNER_LIMIT = 2048


class Login(asyncssh.SSHClient):
    """One handshake. Which host keys count is decided before it: here the answer is always no."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials,
        questions: Questions,
        record: LoginRecord,
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._questions = questions
        self._record = record
        self._on_lost: Callable[[Exception | None], None] | None = None
        self._lost: tuple[Exception | None] | None = None
        self._challenges = 0
        self._password_request = questions.request("password", endpoint.text)
        self._password: str | None = None
        self._prompt_answers: list[tuple[SecretRequest, str]] = []
        self._connection: asyncssh.SSHClientConnection | None = None
        self._asked = False
        self._methods: tuple[str, ...] = ()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def greeted(self) -> bool:
        """The other side has said that it is an SSH server."""
        return self._connection is not None and bool(
            self._connection.get_extra_info("server_version")
        )

    @property
    def may_retry(self) -> bool:
        """The connection went before a login was tried: sshd was busy, no answer of a person is lost."""
        return self._record.offered_key is None and not self._asked

    @property
    def methods(self) -> tuple[str, ...]:
        """What the server would take, as far as it was asked."""
        return self._methods

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> None:
        self._asked = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = (exc,)
        if self._on_lost is not None:
            self._on_lost(exc)

    def watch(self, on_lost: Callable[[Exception | None], None]) -> None:
        """Tell when this connection goes, from the moment on when it is up."""
        self._on_lost = on_lost
        if self._lost is not None:
            on_lost(self._lost[0])

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self._record.offered_key = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self._record.banner = (self._record.banner + msg[:BANNER_LIMIT])[-BANNER_LIMIT:]

    async def public_key_auth_requested(self) -> SSHKeyPair | asyncssh.SSHKey | None:
        self._note_methods()
        return await self._credentials.late_pair()

    async def password_auth_requested(self) -> str | None:
        """The password that worked before, else the person's; three tries."""
        self._note_methods()
        request = self._password_request
        if self._password is not None:
            self._questions.forget(request)
        kept = self._questions.kept(request)
        if self._record.passwords_tried >= MAX_TRIES or not self._questions.possible:
            return None
        self._record.passwords_tried += 1
        self._password = kept if kept is not None else await self._questions.ask(request)
        self._record.declined |= self._password is None
        return self._password

    def kbdint_auth_requested(self) -> str | None:
        self._note_methods()
        return "" if self._questions.possible and self._challenges < MAX_TRIES else None

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str] | None:
        if not prompts:
            return []
        self._challenges += 1
        if self._challenges > MAX_TRIES or len(prompts) > MAX_PROMPTS:
            return None
        answers = [await self._answer(prompt) for prompt, _ in prompts]
        if any(answer is None for answer in answers):
            self._record.declined = True
            return None
        return [answer for answer in answers if answer is not None]

    def auth_completed(self) -> None:
        """Only what a host accepted is kept."""
        if self._password is not None:
            self._questions.keep(self._password_request, self._password)
        for request, answer in self._prompt_answers:
            self._questions.keep(request, answer)

    def _note_methods(self) -> None:
        """asyncssh forgets a method when it is done with it."""
        if self._connection is not None and not self._methods:
            self._methods = tuple(self._connection.get_server_auth_methods())

    async def _answer(self, prompt: str) -> str | None:
        """A fixed password may be used again; a one-time code may not."""
        request = self._questions.request("keyboard_interactive", self._endpoint.text, prompt)
        reusable = "password" in prompt.lower()
        kept = self._questions.kept(request) if reusable and self._challenges == 1 else None
        if kept is not None:
            return kept
        self._questions.forget(request)
        self._record.passwords_tried += 1
        answer = await self._questions.ask(request)
        if answer is not None and reusable:
            self._prompt_answers = [(request, answer)]
        return answer
