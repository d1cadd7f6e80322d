"""One login: which keys are offered in which order, what a person is asked, and what is remembered for the error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import asyncssh
from asyncssh.agent import SSHAgentClient
from asyncssh.public_key import SSHKeyPair

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.transport.answers import Answers, Patience
from cockpit.transport.base import AskSecret, SecretKind, SecretRequest
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.keyring import KeyFile, KeyRing

T = TypeVar("T")

MAX_TRIES = 3
MAX_PROMPTS = 10
BANNER_LIMIT = 2048


@dataclass(slots=True)
class LoginRecord:
    """What happened, for the error that may have to be explained."""

    offered_key: asyncssh.SSHKey | None = None
    agent_keys: int = 0
    files: list[str] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    passphrase_needed: str | None = None
    passwords_tried: int = 0
    declined: bool = False
    banner: str = ""


class Questions:
    """Asks for one login at one server, while its time-out stands still."""

    def __init__(
        self, host: HostName, ask: AskSecret | None, answers: Answers, patience: Patience
    ) -> None:
        self._host = host
        self._ask = ask
        self._answers = answers
        self._patience = patience

    @property
    def possible(self) -> bool:
        return self._ask is not None

    def request(self, kind: SecretKind, subject: str, prompt: str = "") -> SecretRequest:
        return SecretRequest(self._host, kind, safe_line(prompt)[:400], subject)

    def kept(self, request: SecretRequest) -> str | None:
        return self._answers.kept(request)

    def keep(self, request: SecretRequest, answer: str) -> None:
        self._answers.keep(request, answer)

    def forget(self, request: SecretRequest) -> None:
        self._answers.forget(request)

    async def ask(self, request: SecretRequest) -> str | None:
        if self._ask is None:
            return None
        with self._patience:
            return await self._answers.ask(self._ask, request)

    async def once(self, key: tuple[str, ...], start: Callable[[], Awaitable[T]]) -> T:
        """What several logins need at the same time is asked by one of them; the others stand still with it."""
        with self._patience:
            return await self._answers.once(key, start)


class LockedKeyPair(SSHKeyPair):
    """A key file that needs a passphrase: offered by its public half, opened when the host says it would do."""

    _key_type = "local"

    def __init__(
        self,
        public: asyncssh.SSHKey,
        file: KeyFile,
        open_key: Callable[[KeyFile], Awaitable[asyncssh.SSHKey | None]],
    ) -> None:
        super().__init__(
            public.algorithm,
            public.algorithm,
            public.sig_algorithms,
            public.sig_algorithms,
            public.public_data,
            None,
            file.certificate,
        )
        self._file = file
        self._open_key = open_key

    async def sign_async(self, data: bytes) -> bytes:
        """Raises ValueError when the key stays locked: asyncssh goes on to the next one."""
        key = await self._open_key(self._file)
        if key is None:
            raise ValueError("the key stays locked")
        return bytes(key.sign(data, self.sig_algorithm))


class Credentials:
    """The keys for one login, in the order in which they are offered."""

    def __init__(
        self, endpoint: Endpoint, ring: KeyRing, questions: Questions, record: LoginRecord
    ) -> None:
        self._endpoint = endpoint
        self._ring = ring
        self._questions = questions
        self._record = record
        self._unreadable: list[KeyFile] = []

    async def pairs(self, agent: SSHAgentClient | None, agent_timeout_s: float) -> list[SSHKeyPair]:
        """Keys that were named first (from the agent where it holds them), then the agent's, then the defaults."""
        held = await self._agent_pairs(agent, agent_timeout_s)
        from_files = await self._file_pairs(held)
        rest = [] if self._endpoint.identities_only else list(held.values())
        if self._endpoint.identities_given:
            return from_files + rest
        return rest + from_files

    async def late_pair(self) -> SSHKeyPair | asyncssh.SSHKey | None:
        """A locked file that hides its public half: opened only when every other key was refused."""
        while self._unreadable:
            key = await self.open_file(self._unreadable.pop(0))
            if key is not None:
                return key
        return None

    async def open_file(self, file: KeyFile) -> asyncssh.SSHKey | None:
        """The key, if it is open, or if a person opens it within three tries."""
        key = self._ring.opened(file)
        if key is None and self._questions.possible:
            key = await self._questions.once(
                ("unlock", str(file.path)), lambda: self._open_by_asking(file)
            )
            self._record.declined = key is None
        self._record.passphrase_needed = str(file.path) if key is None else None
        return key

    async def _open_by_asking(self, file: KeyFile) -> asyncssh.SSHKey | None:
        request = self._questions.request("passphrase", str(file.path))
        for _ in range(MAX_TRIES):
            answer = await self._questions.ask(request)
            if answer is None:
                return None
            key = await self._ring.open(file, answer)
            if key is not None:
                return key
        return None

    async def _agent_pairs(
        self, agent: SSHAgentClient | None, timeout_s: float
    ) -> dict[bytes, SSHKeyPair]:
        if agent is None:
            return {}
        try:
            pairs = await asyncio.wait_for(agent.get_keys(), timeout_s)
        except (OSError, ValueError, asyncio.TimeoutError):
            return {}
        self._record.agent_keys = len(pairs)
        return {pair.key_public_data: pair for pair in pairs}

    async def _file_pairs(self, held: dict[bytes, SSHKeyPair]) -> list[SSHKeyPair]:
        found: list[SSHKeyPair] = []
        for path in self._endpoint.identities:
            file = await self._ring.file(path)
            if file is None:
                self._note_missing(path)
                continue
            self._record.files.append(str(path))
            found += self._of_file(file, held)
        return found

    def _note_missing(self, path: Path) -> None:
        if self._endpoint.identities_given:
            self._record.missing_files.append(str(path))

    def _of_file(self, file: KeyFile, held: dict[bytes, SSHKeyPair]) -> Sequence[SSHKeyPair]:
        in_agent = held.pop(file.blob, None) if file.blob else None
        if in_agent is not None:
            if file.certificate is not None:
                in_agent.set_certificate(file.certificate)
            return [in_agent]
        key = file.key or self._ring.opened(file)
        if key is not None:
            certificates = [file.certificate] if file.certificate else []
            return asyncssh.load_keypairs([key], certlist=certificates)
        if file.locked and file.public is not None:
            return [LockedKeyPair(file.public, file, self.open_file)]
        if file.locked:
            self._unreadable.append(file)
        return []


class Login(asyncssh.SSHClient):
    """asyncssh's questions during one handshake, answered. Host keys are decided beforehand: here it is only no."""

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
        return self.greeted and self._record.offered_key is None and not self._asked

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
