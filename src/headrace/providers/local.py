"""The local model: what answers when nothing is configured. Small and often wrong, but real, free and without network.

One server for all processes of a directory; it starts with the first call and stops after its last user.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import secrets
import sys
import threading
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

from headrace.hosting import Hosted, HostedServer, ServerState, acquire
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Embeddings, LLMSettings, TextPart
from headrace.model.provider_errors import InvalidRequestError, ProviderUnavailableError
from headrace.providers import local_server
from headrace.providers.local_model import find_weights
from headrace.providers.openai import OpenAIProvider

#: The model's name; part of the memo key, so it changes with the weights.
MODEL = "smollm2-135m-instruct-q4_1"
_KEY_FILE = "api-key"
_PROBE_SECONDS = 2.0
#: Asked for the readiness: it wants the key, so that only our server answers rightly.
_PROBE_PATH = "/slots"


class LocalProvider:
    """The model in a server of its own under `directory`, asked plainly.

    `timeout` is the total deadline of a call, the server's start (1 to 3 s) not included. Raises ConfigError when the
    model is not installed.
    """

    def __init__(self, directory: Path, *, timeout: timedelta) -> None:
        self._weights = find_weights()
        self._directory, self._timeout = directory.absolute(), timeout
        self._hosted: Hosted | None = None
        self._client: OpenAIProvider | None = None
        # Of threads and not of a loop: the first calls may come from several loops.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """`local`."""
        return "local"

    @property
    def model(self) -> str:
        """The name of the weights."""
        return MODEL

    @property
    def style(self) -> AnswerStyle:
        """Plain: it is too small for more."""
        return AnswerStyle.PLAIN

    async def prepare(self) -> None:
        """Start the server where it does not run. Raises HostingError when it cannot be started."""
        if self._client is None:
            await asyncio.to_thread(self._open)

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once; starts the server where it does not run. Raises HostingError when it cannot be started."""
        client = self._client
        if client is None:
            client = await asyncio.to_thread(self._open)
        try:
            return await client.complete(request)
        except ProviderUnavailableError:
            # The server died, and the next one may have another port. Nothing was paid, so once more is free.
            await client.aclose()
            client = await asyncio.to_thread(self._reopen, client)
            return await client.complete(request)

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer, None]:
        """The whole answer as one part: its answers are short. Raises like `complete`."""
        answer = await self.complete(request)
        if answer.text:
            yield TextPart(answer.text)
        yield answer

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """Refused: the local model writes text alone."""
        raise InvalidRequestError(
            "The local model has no embeddings. Set HEADRACE_LLM_MODEL, HEADRACE_LLM_BASE_URL and HEADRACE_LLM_API_KEY "
            "to an endpoint that has them, and name its model of embeddings",
            provider=self.name,
        )

    async def aclose(self) -> None:
        """Give up the hold on the server; it stops once nobody holds it."""
        with self._lock:
            client, hosted = self._client, self._hosted
            self._client = self._hosted = None
        if client is not None:
            await client.aclose()
        if hosted is not None:
            hosted.release()

    def _open(self) -> OpenAIProvider:
        with self._lock:
            if self._client is None:
                self._hosted = acquire(self._server())
                self._client = self._connect(self._hosted.port)
            return self._client

    def _reopen(self, failed: OpenAIProvider) -> OpenAIProvider:
        with self._lock:
            if self._client is failed and self._hosted is not None:
                self._client = self._connect(self._hosted.ensure().port)
        return self._open()

    def _connect(self, port: int) -> OpenAIProvider:
        settings = LLMSettings(
            model=MODEL,
            base_url=f"http://127.0.0.1:{port}/v1",
            api_key=self._key(),
            style=AnswerStyle.PLAIN,
            timeout=self._timeout,
        )
        return OpenAIProvider(settings, name=self.name, use_proxies=False)

    def _server(self) -> HostedServer:
        key_file = self._directory / _KEY_FILE
        return HostedServer(
            directory=self._directory,
            # -P: the folder of this file holds an openai.py that is not the SDK.
            command=lambda port: [
                sys.executable,
                "-P",
                local_server.__file__,
                str(port),
                str(self._weights),
                str(key_file),
            ],
            ready=self._is_ready,
            prepare=self._prepare,
        )

    def _prepare(self) -> None:
        key_file = self._directory / _KEY_FILE
        if not key_file.exists():
            draft = key_file.with_suffix(".new")
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32))
            draft.replace(key_file)

    def _key(self) -> str:
        return (self._directory / _KEY_FILE).read_text(encoding="ascii").strip()

    def _is_ready(self, state: ServerState) -> bool:
        # Without the key first: whoever else took the port must not be told it.
        return _status(state.port, None) == http.client.UNAUTHORIZED and _status(state.port, self._key()) == 200


def _status(port: int, key: str | None) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", _PROBE_PATH, headers={} if key is None else {"authorization": f"Bearer {key}"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
