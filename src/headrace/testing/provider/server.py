"""The scripted provider: a model's HTTP interface on loopback that answers, fails and counts as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import h11

from headrace.model.errors import InvalidInputError
from headrace.model.llm import LLMSettings
from headrace.testing.provider.account import Account, Charge
from headrace.testing.provider.admin import administer
from headrace.testing.provider.calls import CallLog, CallRecord
from headrace.testing.provider.chat import BadChatRequestError, read_chat
from headrace.testing.provider.delivery import Delivery
from headrace.testing.provider.desk import Desk
from headrace.testing.provider.embeddings import embeddings_body, read_embeddings
from headrace.testing.provider.faults import Fault, FaultScript, Strike
from headrace.testing.provider.latency import Latency
from headrace.testing.provider.pacing import Pace
from headrace.testing.provider.quota import Quota, QuotaChange
from headrace.testing.provider.refusals import JSON_HEADERS, error_body
from headrace.testing.provider.replies import AnswerFunction, reply_to
from headrace.testing.provider.rules import Answers
from headrace.testing.provider.tally import Stats
from headrace.testing.provider.wire import HttpConnection, HttpRequest, RequestTooLargeError

Endpoint = Callable[[HttpConnection, HttpRequest], Awaitable[None]]
#: Clients may come all at once.
_BACKLOG = 1_024


@dataclass(eq=False, kw_only=True)
class ScriptedProvider:
    """An OpenAI-compatible server for tests, in this process, on loopback only.

        async with ScriptedProvider(faults=[Fault(kind=FaultKind.RATE_LIMIT, attempts=Span(1, 1))]) as provider:
            app = App(llm=provider.settings)
            ...
            assert provider.count(containing="Paper 7") == 2

    Serves `/v1/chat/completions` (whole and streamed), `/v1/embeddings`, `/v1/models`, `/_calls`, `/scripted/quota` and
    `/scripted/stats`; all want the API key.
    """

    #: Called with a `ChatRequest`; returns text, a JSON-able value, or None for the default answer. May be async.
    answer: AnswerFunction | None = None
    #: The script; the first line that strikes decides.
    faults: Sequence[Fault] = ()
    latency: Latency = field(default_factory=Latency)
    #: Rules for default answers (see `Answers`).
    rules: Answers = field(default_factory=Answers)
    #: Append every call to this file, forced to disk.
    log: Path | None = None
    api_key: str = field(default="scripted-key", repr=False)
    model: str = "scripted-model"
    #: Prompts of more (rough) tokens are refused as too long; None accepts all.
    context_tokens: int | None = None
    #: What the account may use at first; no limits by default.
    quota: Quota = field(default_factory=Quota)
    #: Changes of the quota that wait for their time.
    quota_changes: Sequence[QuotaChange] = ()
    #: Seed of the faults' rates.
    seed: int = 0
    #: Only loopback addresses are accepted.
    host: str = "127.0.0.1"
    #: 0 takes a free port.
    port: int = 0

    def __post_init__(self) -> None:
        if not ipaddress.ip_address(self.host).is_loopback:
            raise InvalidInputError("host", "must be a loopback address: this server is for tests", self.host)
        self._calls = CallLog(self.log)
        self._account = Account(self.quota, self.quota_changes)
        self._desk = Desk(self._account, self._calls, FaultScript(self.faults, self.seed), self.context_tokens)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> ScriptedProvider:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Listen; `base_url` is known afterwards. Raises OSError where the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpConnection(self._serve, self._connections), self.host, self.port, backlog=_BACKLOG
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stop listening and drop all connections. Allowed twice."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._calls.release()

    @property
    def base_url(self) -> str:
        """What to give as HEADRACE_LLM_BASE_URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    @property
    def settings(self) -> LLMSettings:
        """Settings that point to this server."""
        return LLMSettings(model=self.model, base_url=self.base_url, api_key=self.api_key)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that point another process to this server."""
        return {
            "HEADRACE_LLM_MODEL": self.model,
            "HEADRACE_LLM_BASE_URL": self.base_url,
            "HEADRACE_LLM_API_KEY": self.api_key,
        }

    @property
    def calls(self) -> Sequence[CallRecord]:
        """All calls so far, in the order of their arrival."""
        return tuple(self._calls.records)

    def count(self, containing: str = "") -> int:
        """Number of calls whose messages hold these words; of all calls by default."""
        return self._calls.count(containing)

    def per_content(self, containing: str = "") -> list[dict[str, Any]]:
        """`{key, calls, answered, excerpt}` of each content, most often asked first."""
        return self._calls.per_content(containing)

    def forget_calls(self) -> None:
        """Start counting anew; what is in the buckets stays."""
        self._calls.clear()
        self._account.tally.clear()

    @property
    def peak_in_flight(self) -> int:
        """Most calls that were open at once."""
        return self._account.tally.peak_in_flight

    @property
    def ruling_quota(self) -> Quota:
        """The quota that rules now."""
        self._account.gate.catch_up()
        return self._account.gate.quota

    def set_quota(self, quota: Quota | None = None, **changes: Any) -> Quota:
        """Let another quota rule from now on, or the ruling one with changes; returns it.

        `provider.set_quota(requests_per_minute=300)` changes one limit, None takes it away. Raises InvalidInputError.
        """
        self._account.gate.set((quota or self.ruling_quota).changed(changes))
        return self._account.gate.quota

    def schedule_quota(self, change: QuotaChange) -> None:
        """Let a change of the quota wait for its time."""
        self._account.gate.schedule(change)

    def stats(self) -> Stats:
        """What was let in, refused, answered and used so far, second by second."""
        return self._account.stats(self._calls)

    async def _serve(self, connection: HttpConnection) -> None:
        try:
            while (request := await connection.next_request()) is not None:
                await self._route(connection, request)
                if not connection.is_reusable:
                    break
        except h11.RemoteProtocolError:
            await _try_to_respond(connection, 400, "this is not HTTP/1.1")
        except RequestTooLargeError as error:
            await _try_to_respond(connection, 413, str(error))
        except (ConnectionError, asyncio.CancelledError):
            pass

    async def _route(self, connection: HttpConnection, request: HttpRequest) -> None:
        url = urlsplit(request.path)
        given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        if not hmac.compare_digest(given, self.api_key.encode()):
            await connection.respond(401, JSON_HEADERS, error_body("incorrect API key", code="invalid_api_key"))
            return
        endpoint = self._endpoints.get(("*" if url.path.startswith("/scripted/") else request.method, url.path))
        if endpoint is None:
            await connection.respond(404, JSON_HEADERS, error_body(f"no {request.method} {url.path} here"))
            return
        try:
            await endpoint(connection, request)
        except BadChatRequestError as error:
            await connection.respond(400, JSON_HEADERS, error_body(str(error)))

    @property
    def _endpoints(self) -> Mapping[tuple[str, str], Endpoint]:
        return {
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/embeddings"): self._embed,
            ("GET", "/v1/models"): self._models,
            ("GET", "/_calls"): self._tell_calls,
            ("DELETE", "/_calls"): self._tell_calls,
            ("*", "/scripted/quota"): self._administer,
            ("*", "/scripted/stats"): self._administer,
        }

    async def _models(self, connection: HttpConnection, request: HttpRequest) -> None:
        models = {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "scripted"}]}
        await connection.respond(200, JSON_HEADERS, json.dumps(models).encode())

    async def _tell_calls(self, connection: HttpConnection, request: HttpRequest) -> None:
        if request.method == "DELETE":
            self.forget_calls()
        report = self._report(parse_qs(urlsplit(request.path).query).get("contains", [""])[0])
        await connection.respond(200, JSON_HEADERS, json.dumps(report).encode())

    async def _administer(self, connection: HttpConnection, request: HttpRequest) -> None:
        status, body = administer(self, request.method, urlsplit(request.path).path, request.body)
        await connection.respond(status, JSON_HEADERS, body)

    def _report(self, containing: str) -> dict[str, Any]:
        contents = self._calls.per_content(containing)
        return {
            "total": sum(content["calls"] for content in contents),
            "answered": sum(content["answered"] for content in contents),
            "peak_in_flight": self.peak_in_flight,
            "contents": contents,
        }

    async def _chat(self, connection: HttpConnection, raw: HttpRequest) -> None:
        request = read_chat(raw.body)

        async def answer(headers: Mapping[str, str], strike: Strike | None, charge: Charge) -> bool:
            reply = await reply_to(request, strike, answer=self.answer, default=self.rules)
            identity = {
                "id": f"chatcmpl-{request.key}-{len(self._calls.records)}",
                "created": int(time.time()),
                "model": request.model or self.model,
            }
            delivery = Delivery(connection, request, latency=self.latency, headers=headers, charge=charge)
            return await delivery.deliver(reply, identity, strike)

        await self._desk.take(connection, request, answer)

    async def _embed(self, connection: HttpConnection, raw: HttpRequest) -> None:
        request = read_embeddings(raw.body)

        async def answer(headers: Mapping[str, str], strike: Strike | None, charge: Charge) -> bool:
            body = json.dumps(embeddings_body(request, self.model)).encode()
            await Pace(self.latency).first_token()
            charge.settle()
            await connection.respond(200, {**JSON_HEADERS, **headers}, body)
            return True

        await self._desk.take(connection, request, answer)


async def _try_to_respond(connection: HttpConnection, status: int, message: str) -> None:
    with contextlib.suppress(ConnectionError, h11.LocalProtocolError):
        await connection.respond(status, {**JSON_HEADERS, "connection": "close"}, error_body(message))
