"""The LLM call: what users get as `app.llm`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.asking import Asker
from headrace.llm.embedding import embed
from headrace.llm.exchange import MAX_REPAIRS, Exchange
from headrace.llm.first_requests import first_request
from headrace.llm.forecasting import Forecast, Forecaster, PlannedAsk
from headrace.llm.items import ItemResult, Items, OnFail
from headrace.llm.ladder.lists import extract_items, stream_items
from headrace.llm.ladder.objects import extract_object
from headrace.llm.models import Models
from headrace.llm.pace import ModelPace
from headrace.llm.plain import extract_plain
from headrace.llm.prompts import conversation, stop_sequences
from headrace.llm.results import Completion, Extraction
from headrace.llm.schema import plain_schema
from headrace.llm.switches import MemoUse, OnBudget, Switches
from headrace.model.budget import check_tenant
from headrace.model.errors import InvalidInputError
from headrace.model.llm import AnswerStyle, CompletionRequest, FinishReason, Message
from headrace.model.numbers import check_whole

M = TypeVar("M", bound=BaseModel)

#: What providers and stores take of a whole number.
_MOST = 2**31 - 1


class LLM:
    """Asks a model for values and texts, and buys no answer twice.

    Every answer is committed to the memo before it is read; an equal ask (model, messages, schema, parameters) takes it
    from there at no cost, after any crash and in any process. Calls are never retried here beyond repairs: transient
    `ProviderError`s are for the job's retry policy.

    Before a call its quota and its part of the budgets are reserved. Inside a job's handler it waits for them at most
    2 s; then the handler leaves its slot and runs again later, from its first line (see docs/explanation/parking.md).
    Elsewhere it waits as long as it takes. A 429 is such a wait, and never an error.

    Safe for any number of coroutines.
    """

    def __init__(self, models: Models, model: str = "", switches: Switches | None = None) -> None:
        """`model`: the name of a configured model; empty: the default one."""
        self._models, self._model, self._switches = models, model, switches or Switches()

    def using(
        self, model: str | None = None, *, tenant: str | None = None, memo: MemoUse | str | None = None,
        on_budget: OnBudget | str | None = None,
    ) -> LLM:  # fmt: skip
        """The same with another model, for a tenant, or with another use of stored answers; None keeps what is.

        `model`: NAME of `[llm.models.NAME]`. `tenant`: calls count against the budget `tenant:NAME`, and share stored
        answers with the tenant's calls alone. `memo`: "use" (an equal ask costs nothing), "fresh" (buy a new answer
        and keep that) or "bypass" (neither read nor keep). In a job both buy an equal ask once, however often the job
        runs; give each a `sample` of its own where several answers are wanted. `on_budget`: what a call does that a
        budget has no room for: "wait" until it is raised, or "fail" with BudgetUsedUpError. Raises InvalidInputError.

            summary = await app.llm.using("strong", tenant="acme").complete("Summarise: …")
        """
        switches = self._switches
        if tenant is not None:
            switches = replace(switches, tenant=check_tenant(tenant))
        if memo is not None:
            switches = replace(switches, memo=_memo_use(memo))
        if on_budget is not None:
            switches = replace(switches, on_budget=_on_budget(on_budget))
        return LLM(self._models, self._model if model is None else self._models.check(model), switches)

    @property
    def style(self) -> AnswerStyle:
        """What the model can be asked for. Raises ConfigError where the model is not configured rightly."""
        return self._asker.provider.style

    def check(self) -> None:
        """Raise ConfigError where the model is not configured rightly; nothing is asked."""
        _ = self._asker

    async def prepare(self) -> None:
        """Import and open what the first call needs, so that it does not wait for that; nothing is asked.

        Raises ConfigError where the model is not configured rightly, ProviderError.
        """
        await self._asker.provider.prepare()

    @property
    def model_name(self) -> str:
        """The model's name. Raises ConfigError where the model is not configured rightly."""
        return self._asker.provider.model

    @property
    def provider_name(self) -> str:
        """The provider's name. Raises ConfigError where the model is not configured rightly."""
        return self._asker.provider.name

    @property
    def pool(self) -> str:
        """The name of the quota that the model uses: for `pools=` of tasks, and `headrace llm pools`."""
        return self._asker.endpoint.pool.name

    @property
    def pace(self) -> ModelPace | None:
        """How fast the model answered this process lately; None before a streamed call was answered.

        Raises ConfigError where the model is not configured rightly.
        """
        return self._models.means.paces.of(self.provider_name, self.model_name)

    async def extract(  # noqa: PLR0913 # the public call: each parameter is one thing users set
        self,
        model: type[M],
        *,
        prompt: str,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
        repairs: int = MAX_REPAIRS,
        on_fail: OnFail | None = None,
    ) -> M:
        """A validated value of `model`, a pydantic model, from what the model answers.

        Put what many prompts share first and the question last: providers cache equal beginnings. `max_tokens` bounds
        one answer (default: the provider's limit); a cut answer is asked for again with more. `temperature` is 0 to 2.
        `sample` buys another answer to an equal ask: each number has its own.

        An answer is read past small mistakes in its JSON; of what is not valid only the wrong fields and list items are
        asked again, `repairs` times (0 to 2), then of the model of `escalate_to`. `on_fail` is the last resort: a value
        of `model`, or a function of the model's last words and their errors that returns one.

        Raises BadOutputError when all that gave no valid value, RefusedError when the model declines
        (both for good: running the ask again gives the same, at no cost), other ProviderErrors, InvalidInputError.

            class Person(BaseModel):
                name: str
                born: int | None = Field(description="year of birth")

            person = await app.llm.extract(Person, prompt="Ada Lovelace was born in 1815. Who is it about?")
        """
        extraction = await self.extract_detailed(
            model, prompt=prompt, system=system, max_tokens=max_tokens, temperature=temperature, sample=sample,
            repairs=repairs, on_fail=on_fail,
        )  # fmt: skip
        return extraction.value

    async def extract_detailed(  # noqa: PLR0913 # see extract
        self,
        model: type[M],
        *,
        prompt: str,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
        repairs: int = MAX_REPAIRS,
        on_fail: OnFail | None = None,
    ) -> Extraction[M]:
        """The same as `extract`, with tokens, calls, reused answers and provenance beside the value."""
        plain_schema(model)  # a model that is none is told before anything is asked
        request = self._request(conversation(prompt, system), max_tokens, temperature, sample)
        exchange = self._exchange(check_whole("repairs", repairs, 0, MAX_REPAIRS))
        if self.style is AnswerStyle.PLAIN:
            return await extract_plain(exchange, model, request, on_fail=on_fail)
        asked = first_request(model, request, self.style)
        return await extract_object(exchange, model, asked, on_fail=on_fail)

    async def extract_items(  # noqa: PLR0913 # see extract
        self,
        item: type[M],
        *,
        prompt: str,
        system: str | None = None,
        expected: int | None = None,
        on_fail: OnFail = "needs_review",
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> Items[M]:
        """A list of values of `item`, a pydantic model, from one answer; each is valid, or says that it needs review.

        A valid item is kept as it came; only those that failed are asked again, with their errors. `expected`: how many
        there are to be; missing ones are asked for; None: as many as the model gives. `on_fail`: what becomes of an
        item that stays invalid: "needs_review", a default value, or a function of what the model said and the errors.
        Every item tells how it came about (`provenance`). The rest is as with `extract`.

            rivers = await app.llm.extract_items(River, prompt="Name ten rivers in Norway.", expected=10)
            for result in rivers:
                print(result.index, result.value, result.provenance, result.errors)
        """
        request = self._request(conversation(prompt, system), max_tokens, temperature, sample)
        return await extract_items(
            self._exchange(), item, request, style=self.style, expected=expected, on_fail=on_fail
        )  # fmt: skip

    def stream_items(  # noqa: PLR0913 # see extract
        self,
        item: type[M],
        *,
        prompt: str,
        system: str | None = None,
        expected: int | None = None,
        on_fail: OnFail = "needs_review",
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> AsyncGenerator[ItemResult[M]]:
        """The same as `extract_items`, each item the moment it closes in the stream.

        An item that is not valid comes at once with `is_final` False, and once more, with the same index, when it was
        asked for again after the stream. What came before a crash is not asked for again. Close the iterator
        (`contextlib.aclosing`) where you stop early; a call that was sent goes on, and its answer is kept.

            async for result in app.llm.stream_items(River, prompt="Name ten rivers in Norway.", expected=10):
                if result.is_final:
                    print(result.value)
        """
        request = self._request(conversation(prompt, system), max_tokens, temperature, sample)
        return stream_items(self._exchange(), item, request, style=self.style, expected=expected, on_fail=on_fail)

    async def estimate(self, asks: Sequence[PlannedAsk]) -> Forecast:
        """What asks would take: calls, tokens, money, time, and the limit that binds. Makes no call.

        Asks whose answers are stored cost nothing and are left out of the sums. An ask is any object with `shape` (a
        pydantic model, as for `extract`; None: as for `complete`), `system`, `prompt`, `messages`, `stop`,
        `max_tokens`, `temperature` and `expected_output_tokens`. Raises InvalidInputError, StoreUnavailableError.
        """
        means = self._models.means
        return await Forecaster(self._asker, self._switches, means.memo, means.budgets).foresee(asks)

    async def complete(  # noqa: PLR0913 # see extract
        self,
        prompt: str | None = None,
        *,
        system: str | None = None,
        messages: Sequence[Message | Mapping[str, str]] = (),
        stop: str | Sequence[str] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> str:
        """The model's answer as text.

        `messages` are earlier turns, such as worked examples; they stand between `system` and `prompt`, and may hold
        the whole conversation when `prompt` is left out. The answer ends before the first of the `stop` sequences, or
        after `max_tokens` (see `complete_detailed` for whether it was cut).

        Raises RefusedError, other ProviderErrors, InvalidInputError.

            text = await app.llm.complete("Name a river in Norway.", stop="\\n", max_tokens=20)
        """
        completion = await self.complete_detailed(
            prompt,
            system=system,
            messages=messages,
            stop=stop,
            max_tokens=max_tokens,
            temperature=temperature,
            sample=sample,
        )
        return completion.text

    async def complete_detailed(  # noqa: PLR0913 # see extract
        self,
        prompt: str | None = None,
        *,
        system: str | None = None,
        messages: Sequence[Message | Mapping[str, str]] = (),
        stop: str | Sequence[str] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> Completion:
        """The same as `complete`, with tokens, whether the answer was reused and whether it was cut."""
        turns = conversation(prompt, system, messages)
        request = self._request(turns, max_tokens, temperature, sample, stop_sequences(stop))
        exchange = self._exchange()
        answer = await exchange.send(request)
        return Completion(
            text=answer.text,
            usage=exchange.usage,
            reused=exchange.usage.calls == 0,
            truncated=answer.finish_reason is FinishReason.LENGTH,
        )

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order, from a model that makes embeddings.

        Usually another model than the one that answers: configure it as `[llm.models.NAME]`, and take `using("NAME")`.
        Raises InvalidInputError, ProviderError.

            near, far = await app.llm.using("embedder").embed(["Frost Keep", "Icehold"])
        """
        return await embed(self._exchange, self.model_name, texts)

    async def aclose(self) -> None:
        """Let paid answers under way arrive (5 s at most), then release the providers. Allowed twice."""
        await self._models.aclose()

    @property
    def _asker(self) -> Asker:
        return self._models.asker(self._model)

    def _exchange(self, most_repairs: int = MAX_REPAIRS) -> Exchange:
        return self._models.exchange(self._model, self._switches, most_repairs=most_repairs)

    def _request(
        self,
        messages: tuple[Message, ...],
        max_tokens: int | None,
        temperature: float,
        sample: int,
        stop: tuple[str, ...] = (),
    ) -> CompletionRequest:
        if max_tokens is not None:
            check_whole("max_tokens", max_tokens, most=_MOST)
        if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
            raise InvalidInputError("temperature", "must be a number from 0 to 2", temperature)
        check_whole("sample", sample, 0, _MOST)
        return CompletionRequest(
            model=self.model_name,
            messages=messages,
            max_tokens=max_tokens,
            temperature=float(temperature),
            stop=stop,
            sample=sample,
        )


def _on_budget(value: object) -> OnBudget:
    try:
        return OnBudget(str(value))
    except ValueError:
        raise InvalidInputError("on_budget", 'must be "wait" or "fail"', value) from None


def _memo_use(value: object) -> MemoUse:
    try:
        return MemoUse(str(value))
    except ValueError:
        raise InvalidInputError("memo", 'must be "use", "fresh" or "bypass"', value) from None
