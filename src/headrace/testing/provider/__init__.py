"""A scripted model provider for tests: an OpenAI-compatible server on loopback. Needs the `testing` extra.

Start it in a test with `async with ScriptedProvider(...) as provider`, or as a process of its own with
`python -m headrace.testing.provider`. See docs/reference/scripted-provider.md.
"""

from headrace.testing.provider.calls import CallRecord, read_log
from headrace.testing.provider.chat import ChatRequest
from headrace.testing.provider.embeddings import embed
from headrace.testing.provider.faults import Fault, FaultKind, Span
from headrace.testing.provider.filler import fill_schema
from headrace.testing.provider.latency import Latency
from headrace.testing.provider.process import ProviderProcess
from headrace.testing.provider.quota import Quota, QuotaChange
from headrace.testing.provider.rules import Answers
from headrace.testing.provider.server import ScriptedProvider
from headrace.testing.provider.tally import Second, Stats

__all__ = [
    "Answers",
    "CallRecord",
    "ChatRequest",
    "Fault",
    "FaultKind",
    "Latency",
    "ProviderProcess",
    "Quota",
    "QuotaChange",
    "ScriptedProvider",
    "Second",
    "Span",
    "Stats",
    "embed",
    "fill_schema",
    "read_log",
]
