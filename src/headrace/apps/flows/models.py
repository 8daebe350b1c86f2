"""Models of flows: `app.llm`, asked for texts and for data by a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.apps.flows.schemas import model_of, values_of

if TYPE_CHECKING:
    from headrace import App, Usage
    from headrace.llm.gateway import LLM

#: Of one US dollar.
_NANO = Decimal(1_000_000_000)


class AppModel:
    """The `Model` of `nodes/services.py`: answers are stored, equal asks are paid once, quotas and budgets hold."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def chat(
        self, prompt: str, *, system: str | None, model: str | None, max_tokens: int | None, temperature: float
    ) -> Mapping[str, Any]:
        """Return the answer with what it took; `cost` is in US dollars, and left out where no price is known."""
        llm = self._llm(model)
        found = await llm.complete_detailed(prompt, system=system, max_tokens=max_tokens, temperature=temperature)
        told = {"text": found.text, "model": llm.model_name, **_taken(found.usage)}
        return {**told, "reused": found.reused, "truncated": found.truncated}

    async def extract(  # noqa: PLR0913 - of the port
        self, schema: Mapping[str, Any], prompt: str, *, system: str | None, model: str | None,
        max_tokens: int | None, temperature: float,
    ) -> Any:  # fmt: skip
        """Return data that are valid by the schema. Raises NodeError for a schema we do not take, BadOutputError."""
        shape = model_of(schema)
        found = await self._llm(model).extract_detailed(
            shape, prompt=prompt, system=system, max_tokens=max_tokens, temperature=temperature
        )
        return values_of(found.value, schema)

    def _llm(self, model: str | None) -> LLM:
        return self._app.llm.using(model) if model else self._app.llm


def _taken(usage: Usage) -> dict[str, Any]:
    taken: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if not usage.unpriced:
        taken["cost"] = float(usage.cost_nano / _NANO)
    return taken
