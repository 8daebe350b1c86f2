"""A scripted model for memory: answers every question of `headrace.apps.memory.writing` by rules, always alike.

In a test: `ScriptedProvider(answer=answer)`. As a process of its own:
`python -m headrace.testing.provider --answer headrace.apps.memory.samples.model:answer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.apps.memory.samples.sentences import FEELINGS, SINGLE, fact_of, logged
from headrace.testing.provider import ChatRequest

Data = list[dict[str, Any]]
_TASK = re.compile(r"(?:Task: |任务：)(\w+) ?[(（]memory-")
_FENCE = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_MOST = re.compile(r"(?:at most|最多回答|最多) (\d+)")
_TAG = re.compile(r"^- (\w+)", re.MULTILINE)
_AGAIN = re.compile(r'\{"(only_items|continue_after)": (\[[\d, ]*\]|\d+)\}\s*$')
_LOG = re.compile(r"- (.*?)(?: \[[^\]]*\])? // \w+$")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def answer(request: ChatRequest) -> Any:
    """Return the answer to a question of memory; None to any other."""
    task = _TASK.search(request.text)
    if task is None:
        return None
    asked = next(text for role, text in request.messages if role == "user")
    blocks = [[json.loads(line) for line in block.splitlines()] for block in _FENCE.findall(asked)]
    language = "zh" if "任务：" in request.text else "en"
    said = _TASKS[task.group(1)](blocks, language, request.messages[0][1])
    return _wanted(said, request.last) if isinstance(said, list) else said


def _summary(blocks: Sequence[Data], language: str, _system: str) -> Data:
    lines = [line for message in blocks[0] if message["who"] in ("user", "summary") for line in _of(message, language)]
    return [dict(told) for told in dict.fromkeys(tuple(line.items()) for line in lines)]


def _of(message: Mapping[str, Any], language: str) -> Data:
    day = _DAY.match(message["at"])
    told = list(logged(message["says"], language))
    return [{"text": text, "kind": kind, "mention": day.group() if day else None, "event": None} for text, kind in told]


def _shared(blocks: Sequence[Data], _language: str, system: str) -> Data:
    heads, told = blocks
    return [
        {
            "part": head["part"],
            "lines": _summary([[line for line in told if line["part"] == head["part"]]], head["language"], system),
        }
        for head in heads
    ]


def _extract(blocks: Sequence[Data], language: str, _system: str) -> Data:
    facts = [fact for line in _lines(blocks[-1]) if (fact := fact_of(line, language)) is not None]
    newest = {(fact["topic"], fact["sub_topic"]): fact for fact in facts}
    return [
        dict(fact)
        for fact in facts
        if (place := (fact["topic"], fact["sub_topic"])) not in SINGLE or newest[place] is fact
    ]


def _tags(blocks: Sequence[Data], language: str, system: str) -> Data:
    if "emotion" not in _TAG.findall(system):
        return []
    felt = [found.group(1).strip() for line in _lines(blocks[0]) for found in FEELINGS[language].finditer(line)]
    return [{"tag": "emotion", "value": value} for value in dict.fromkeys(felt)]


def _merge(blocks: Sequence[Data], _language: str, _system: str) -> Data:
    return [_decision(slot) for slot in blocks[0]]


def _decision(slot: Mapping[str, Any]) -> dict[str, Any]:
    if slot["new"] in slot["current"]:
        return {"number": slot["number"], "action": "abort", "memo": None}
    if (slot["topic"], slot["sub_topic"]) in SINGLE:
        return {"number": slot["number"], "action": "update", "memo": slot["new"]}
    return {"number": slot["number"], "action": "append", "memo": None}


def _organise(blocks: Sequence[Data], _language: str, system: str) -> Data:
    memos, most = blocks[0], _number(system)
    size = -(-len(memos) // most)
    groups = [memos[at : at + size] for at in range(0, len(memos), size)]
    return [
        {
            "sub_topic": group[0]["sub_topic"],
            "memo": "; ".join(memo["memo"] for memo in group),
            "numbers": [memo["number"] for memo in group],
        }
        for group in groups
    ]


def _shorten(blocks: Sequence[Data], language: str, system: str) -> dict[str, Any]:
    memo, most = blocks[0][0]["memo"], _number(system)
    return {"memo": memo[:most] if language == "zh" else " ".join(memo.split()[:most])}


def _lines(block: Data) -> list[str]:
    return [found.group(1) if (found := _LOG.match(line["log"])) else line["log"] for line in block]


def _number(system: str) -> int:
    found = _MOST.search(system)
    assert found is not None, "the question says how many"
    return int(found.group(1))


def _wanted(items: Data, last: str) -> dict[str, Any]:
    """Return all items, or those that are asked for again."""
    again = _AGAIN.search(last)
    if again is None:
        return {"items": items}
    which = json.loads(again.group(2))
    if again.group(1) == "continue_after":
        return {"items": items[which:]}
    return {"items": [items[number - 1] for number in which if number <= len(items)]}


_TASKS: Mapping[str, Callable[[Sequence[Data], str, str], Any]] = {
    "summary": _summary, "shared": _shared, "extract": _extract, "tags": _tags, "merge": _merge,
    "organise": _organise, "shorten": _shorten,
}  # fmt: skip
