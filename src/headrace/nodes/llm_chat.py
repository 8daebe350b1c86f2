"""llmChat: a model's answer to a prompt, for each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.asking import check_manner, check_text, manner, with_json
from headrace.nodes.base import Fault, Item, Named, NodeError, OneCall, Shape, ours


class LlmChatType(Named):
    """Asks a model once for each item, and writes its answer to a field of that item.

    `prompt`, `system`, `model` (NAME of `[llm.models.NAME]`), `maxTokens`, `temperature`; the answer goes to
    `outputField` ("text"). An answer that `maxTokens` cut has `truncated` true beside it. `usageField`, where it is
    given, names a field for what the answer took; it is not the same each time, for a stored answer takes nothing.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a missing prompt, and what a model cannot be told."""
        return check_text(parameters, "prompt", "the text that the model answers") + check_manner(parameters)

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the item with the answer. Raises NodeError, and what the model raises."""
        at = call.parameters
        prompt = at.text("prompt")
        if not prompt.strip():
            raise NodeError("parameters.prompt is empty for this item: there is nothing to ask")
        answer = await call.services.model.chat(prompt, system=at.text("system") or None, **manner(at))
        json = {**call.item["json"], at.text("outputField") or "text": answer["text"]}
        if answer.get("truncated"):
            json["truncated"] = True
        if usage := at.text("usageField"):
            json[usage] = {key: value for key, value in answer.items() if key != "text"}
        return [with_json(call.item, json)]


TYPE = LlmChatType("llmChat", ours("llmChat"), (1, 1), "asks a model, once for each item", Shape.EACH)
