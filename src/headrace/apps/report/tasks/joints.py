"""Where stages and questions join: keys of artifacts, entries of maps, sums of what answers took, why some lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace import Context, Usage
from headrace.apps.report.opening import app
from headrace.apps.report.stages import artifact_key
from headrace.model.payload import encode_json, hash_text

#: References of one question: which of the things behind `work` it is about.
Payload = Mapping[str, Any]


def key_of(job_id: str, stage: str, *inputs: Any) -> str:
    """Return the key of an artifact that is made of `inputs`, JSON values."""
    return artifact_key(job_id, stage, hash_text(encode_json(list(inputs), field="inputs"))[:16])


def entries_of(job_id: str, work: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """Return an entry of a map for each name: small references, however large the work is."""
    return [{"job_id": job_id, "payload_ref": {"name": name, "work": dict(work)}} for name in names]


def total_usage(usages: Iterable[Mapping[str, Any] | None]) -> dict[str, int]:
    """Return the sum of what answers took."""
    return sum((Usage.from_json(usage) for usage in usages if usage), Usage()).to_json()


async def why_missing(ctx: Context, stage: str, answers: Sequence[Any]) -> str:
    """Return the commonest kind of error of the questions without an answer; empty where none lacks one."""
    if all(answer is not None for answer in answers):
        return ""
    assert ctx.run is not None
    tree = await app.find_run(ctx.run.id).tree()
    kinds: Counter[str] = Counter()
    todo = [node for node in tree.nodes if node.path == stage]
    for node in todo:  # which grows
        if node.error is not None and not node.children:
            kinds[node.error.kind] += 1
        todo.extend(node.children)
    return kinds.most_common(1)[0][0] if kinds else "unknown"
