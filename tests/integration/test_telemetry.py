"""Model calls as OpenTelemetry sees them: what arrives at a collector over plain OTLP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace import App
from headrace.model.provider_errors import ProviderAuthError
from headrace.settings import load_settings
from headrace.testing.provider import Fault, ScriptedProvider

MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class Collector:
    """Keeps what is sent to it, with the headers."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[Any]] = {path: [] for path in MESSAGES}
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = MESSAGES[self.path]()
                raw = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    import gzip

                    raw = gzip.decompress(raw)
                message.ParseFromString(raw)
                collector.bodies[self.path].append(message)
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[tuple[str, dict[str, Any], Any]]:
        """Name, attributes and the whole of each span."""
        return [
            (span.name, {item.key: value_of(item.value) for item in span.attributes}, span)
            for body in self.bodies["/v1/traces"]
            for resource in body.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> dict[str, Any]:
        """Metrics by name."""
        return {
            metric.name: metric
            for body in self.bodies["/v1/metrics"]
            for resource in body.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def value_of(value: Any) -> Any:
    """Return an attribute as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector on loopback."""
    collector = Collector()
    thread = Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


async def run(collector: Collector, tmp_path: Path, *, content: str = "false") -> None:
    """Make a call, the same once more, and one that is refused."""
    faults = [Fault.parse("500:status=401,contains=forbidden")]
    async with ScriptedProvider(faults=faults) as provider:
        environ = {
            "HEADRACE_URL": "memory://",
            "HEADRACE_QUEUE_UNSAFE_NO_PERSISTENCE": "true",
            "HEADRACE_LLM_MODEL": provider.model,
            "HEADRACE_LLM_BASE_URL": provider.base_url,
            "HEADRACE_LLM_API_KEY": provider.api_key,
            "HEADRACE_LLM_INPUT_PRICE": "1",
            "HEADRACE_LLM_OUTPUT_PRICE": "2",
            "HEADRACE_TELEMETRY_ENABLED": "true",
            "HEADRACE_TELEMETRY_ENDPOINT": collector.url,
            "HEADRACE_TELEMETRY_HEADERS": "Authorization=Basic cGs6c2s=",
            "HEADRACE_TELEMETRY_CONTENT": content,
        }
        async with App(settings=load_settings(environ=environ, file=tmp_path / "none.toml")) as app:
            for _ in range(2):
                await app.llm.using(tenant="acme").complete("Name a river.", max_tokens=20)
            with pytest.raises(ProviderAuthError):
                await app.llm.complete("forbidden")


async def test_calls_arrive_as_spans_with_the_names_of_the_conventions(collector: Collector, tmp_path: Path) -> None:
    """Model, provider, tokens, finish reason, money and errors; no word of what was asked."""
    await run(collector, tmp_path)
    (name, known, span), (_, again, _), (_, failed, broken) = collector.spans()

    assert name == "chat scripted-model"
    assert span.kind == span.SPAN_KIND_CLIENT
    assert span.end_time_unix_nano > span.start_time_unix_nano
    assert (known["gen_ai.operation.name"], known["gen_ai.provider.name"]) == ("chat", "openai")
    assert known["gen_ai.request.model"] == "scripted-model"
    assert known["gen_ai.request.max_tokens"] == 20
    assert known["gen_ai.response.finish_reasons"] == ["stop"]
    assert known["gen_ai.usage.input_tokens"] > 0
    cost = (known["gen_ai.usage.input_tokens"] + 2 * known["gen_ai.usage.output_tokens"]) / 1e6
    assert json.loads(known["langfuse.observation.cost_details"]) == {"total": pytest.approx(cost)}
    assert known["langfuse.user.id"] == "acme"
    assert again["headrace.llm.reused"] is True
    assert "gen_ai.usage.input_tokens" not in again
    assert failed["error.type"] == "auth"
    assert broken.status.code == broken.status.STATUS_CODE_ERROR
    assert "river" not in str(collector.bodies)
    assert {header["authorization"] for header in collector.headers} == {"Basic cGs6c2s="}


async def test_metrics_count_paid_calls_alone(collector: Collector, tmp_path: Path) -> None:
    """Tokens and durations by the names of the conventions; a memo hit adds nothing."""
    await run(collector, tmp_path)
    found = collector.metrics()

    tokens = found["gen_ai.client.token.usage"].histogram.data_points
    assert {value_of(item.value) for point in tokens for item in point.attributes if "token.type" in item.key} == {
        "input", "output",
    }  # fmt: skip
    assert all(point.count == 1 for point in tokens)
    assert sum(point.count for point in found["gen_ai.client.operation.duration"].histogram.data_points) == 2
    assert found["headrace.llm.cost.usd"].sum.data_points[0].as_double > 0


async def test_content_is_sent_only_where_it_is_asked_for(collector: Collector, tmp_path: Path) -> None:
    """With `[telemetry] content` the messages go along, in the shape of the conventions."""
    await run(collector, tmp_path, content="true")
    _, known, _ = collector.spans()[0]

    [asked] = json.loads(known["gen_ai.input.messages"])
    assert asked == {"role": "user", "parts": [{"type": "text", "content": "Name a river."}]}
    [said] = json.loads(known["gen_ai.output.messages"])
    assert (said["role"], said["finish_reason"]) == ("assistant", "stop")
