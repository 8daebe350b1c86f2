"""Model calls as OpenTelemetry spans and metrics, by the names of the GenAI semantic conventions.

The names are written here: the conventions are still in development and their constants move between packages.
Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/ (spans, metrics, client events). What people asked and what
models answered is left out unless `content` is set. The few `langfuse.*` names let Langfuse show money and sessions of
plain OTLP (https://langfuse.com/integrations/native/opentelemetry).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from headrace.model.llm import Answer, CompletionRequest, FinishReason
from headrace.model.money import to_dollars
from headrace.model.telemetry import TelemetrySettings
from headrace.ports.call_observer import CallReport

_NAME = "headrace"
_SECOND = 1_000_000_000
#: Boundaries that the conventions give.
_TOKEN_BUCKETS = [4.0**power for power in range(14)]
_SECOND_BUCKETS = [0.01 * 2**power for power in range(14)]
_PROVIDERS = {"litellm": "litellm", "local": "headrace.local"}
_REASONS = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length", FinishReason.REFUSED: "content_filter"}


@dataclass(slots=True)
class Otel:
    """Tells OpenTelemetry of each call; `close` sends what is left."""

    tracer: trace.Tracer
    meter: metrics.Meter
    content: bool = False
    close: Callable[[], None] = lambda: None
    _tokens: metrics.Histogram = field(init=False)
    _duration: metrics.Histogram = field(init=False)
    _first_part: metrics.Histogram = field(init=False)
    _cost: metrics.Counter = field(init=False)

    def __post_init__(self) -> None:
        make = self.meter.create_histogram
        self._tokens = make(
            "gen_ai.client.token.usage", "{token}", "Tokens of prompts and answers.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )  # fmt: skip
        self._duration = make(
            "gen_ai.client.operation.duration", "s", "Time from sending to the whole answer.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )  # fmt: skip
        self._first_part = make(
            "gen_ai.client.operation.time_to_first_chunk", "s", "Time from sending to the first part of a stream.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )  # fmt: skip
        self._cost = self.meter.create_counter("headrace.llm.cost.usd", "USD", "Money of calls with a known price.")

    def ended(self, report: CallReport) -> None:
        """Record one call: a span from when it was sent (a memo hit: asked) to its end, and its metrics."""
        operation = "embeddings" if report.request.schema_name == "headrace.embedding" else "chat"
        span = self.tracer.start_span(
            f"{operation} {report.request.model}",
            kind=trace.SpanKind.CLIENT,
            start_time=report.sent_at or report.asked_at,
            attributes=self._attributes(report, operation),
        )
        if report.error:
            span.set_status(trace.StatusCode.ERROR, report.error)
        span.end(end_time=report.ended_at)
        if not report.reused:
            self._measure(report, operation)

    def _attributes(self, report: CallReport, operation: str) -> dict[str, Any]:
        known: dict[str, Any] = {
            **_common(report, operation),
            **_request(report.request),
            **_origin(report),
            "headrace.llm.pool": report.call.pool,
            "headrace.llm.purpose": report.call.purpose.value,
            "headrace.llm.reused": report.reused,
            "headrace.llm.wait_seconds": (report.sent_at - report.asked_at) / _SECOND if report.sent_at else None,
            "langfuse.observation.type": "generation",
        }
        if report.answer is not None:
            known |= _response(report, report.answer)
        if self.content:
            known |= _content(report.request, report.answer)
        return {name: value for name, value in known.items() if value is not None}

    def _measure(self, report: CallReport, operation: str) -> None:
        common = _common(report, operation)
        if report.sent_at:
            self._duration.record((report.ended_at - report.sent_at) / _SECOND, common)
        if report.first_part_at:
            self._first_part.record((report.first_part_at - report.sent_at) / _SECOND, common)
        if report.answer is not None:
            usage = report.answer.usage
            self._tokens.record(usage.input_tokens, {**common, "gen_ai.token.type": "input"})
            self._tokens.record(usage.output_tokens, {**common, "gen_ai.token.type": "output"})
            self._cost.add(float(to_dollars(usage.cost_nano)), common)


def open_otel(settings: TelemetrySettings) -> Otel:
    """Return an observer: with an endpoint it sends there, else it uses the providers that the process has set up."""
    if not settings.endpoint:
        return Otel(trace.get_tracer(_NAME), metrics.get_meter(_NAME), settings.content)
    resource = Resource.create({"service.name": settings.service})
    headers, base = _headers(settings.headers), settings.endpoint.rstrip("/")
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", headers=headers)))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/v1/metrics", headers=headers))
    meters = MeterProvider([reader], resource=resource)

    def close() -> None:
        traces.shutdown()
        meters.shutdown()

    return Otel(traces.get_tracer(_NAME), meters.get_meter(_NAME), settings.content, close)


def _headers(text: str) -> dict[str, str]:
    """Return the headers of a text such as "Authorization=Basic abc,x-team=a"."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _common(report: CallReport, operation: str) -> dict[str, str]:
    common = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(report.call.provider, report.call.provider),
        "gen_ai.request.model": report.request.model,
    }
    if report.answer is not None and report.answer.model:
        common["gen_ai.response.model"] = report.answer.model
    return common | ({"error.type": report.error} if report.error else {})


def _request(request: CompletionRequest) -> dict[str, Any]:
    return {
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.seed": request.seed,
        "gen_ai.request.stop_sequences": list(request.stop) or None,
        "gen_ai.output.type": "json" if request.schema is not None or request.json_mode else "text",
    }


def _origin(report: CallReport) -> dict[str, Any]:
    origin = report.call.origin
    return {
        "headrace.job.id": None if origin.job_id is None else str(origin.job_id),
        "headrace.batch.id": None if origin.batch_id is None else str(origin.batch_id),
        "langfuse.session.id": None if origin.batch_id is None else str(origin.batch_id),
        "langfuse.user.id": origin.tenant,
    }


def _response(report: CallReport, answer: Answer) -> dict[str, Any]:
    known: dict[str, Any] = {
        "gen_ai.response.id": answer.request_id,
        "gen_ai.response.finish_reasons": [_REASONS[answer.finish_reason]],
    }
    if report.reused:
        # It was paid for before: whoever adds up spans must not count it again.
        return known
    usage = answer.usage
    if report.first_part_at:
        known["gen_ai.response.time_to_first_chunk"] = (report.first_part_at - report.sent_at) / _SECOND
    known |= {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
    }
    if usage.cost is not None:
        dollars = float(to_dollars(usage.cost))
        known |= {"headrace.llm.cost.usd": dollars, "langfuse.observation.cost_details": json.dumps({"total": dollars})}
    return known


def _content(request: CompletionRequest, answer: Answer | None) -> Mapping[str, Any]:
    asked = [_message(message.role, message.content) for message in request.messages]
    known = {"gen_ai.input.messages": json.dumps(asked)}
    if answer is not None:
        said = _message("assistant", answer.text) | {"finish_reason": _REASONS[answer.finish_reason]}
        known["gen_ai.output.messages"] = json.dumps([said])
    return known


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
