"""What others are told of model calls."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """`[telemetry]`: model calls as OpenTelemetry spans and metrics; needs headrace[otel]."""

    #: tell OpenTelemetry of model calls
    enabled: bool = False
    #: where they are sent by OTLP over HTTP, such as http://127.0.0.1:4318; empty: to what the process set up itself
    endpoint: str = ""
    #: headers that go along, such as Authorization=Basic …
    headers: str = field(default="", repr=False)
    #: the name of this service in what is sent
    service: str = "headrace"
    #: also send what was asked and answered
    content: bool = False
