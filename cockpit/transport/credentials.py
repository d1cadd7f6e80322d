"""The keys for one login, in the order in which they are offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import asyncssh
from asyncssh.agent import SSHAgentClient
from asyncssh.public_key import SSHKeyPair

from cockpit.transport.endpoints import Endpoint
from cockpit.transport.in_time import in_time
from cockpit.transport.keyring import KeyFile, KeyRing
from cockpit.transport.questions import MAX_TRIES, LoginRecord, Questions


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
            pairs = await in_time(timeout_s, agent.get_keys())
        except (OSError, ValueError):
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
