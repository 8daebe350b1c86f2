"""`[llm]` and `[llm.models.NAME]`: which models answer, under which quotas, at which prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal

from headrace.model.llm import OPENAI_URL, AnswerStyle, LLMSettings, endpoint_of
from headrace.model.prices import Price
from headrace.model.quota import ChargePolicy, PoolLimits

#: Asked for when an endpoint is configured without a model.
DEFAULT_MODEL = "gpt-4o-mini"
PROVIDERS = ("openai", "litellm", "local")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`[llm]`: the model behind `app.llm`, with its quota and price; with no model and no base_url the local model."""

    #: model name; also OPENAI_MODEL
    model: str = ""
    #: endpoint of a server; with provider "openai" also OPENAI_BASE_URL
    base_url: str = ""
    #: key of the endpoint; with provider "openai" also OPENAI_API_KEY
    api_key: str = field(default="", repr=False)
    #: who is asked: "openai" (any compatible endpoint), "litellm" (needs headrace[litellm]) or "local"
    provider: str = ""
    #: how the model is asked: "strict_schema", "json" or "plain"; the local model is always asked plainly
    style: str = "strict_schema"
    #: total deadline of one call
    timeout: timedelta = timedelta(seconds=90)
    #: names the account, where several share this store: each has quotas of its own
    account: str = "default"
    #: names the server in the keys of stored answers, which then outlive a move; empty: host, port and path of base_url
    memo_name: str = ""
    #: quota that the model uses; models with the same pool share it and its limits; empty: PROVIDER:MODEL, or
    #: PROVIDER:ACCOUNT:MODEL
    pool: str = ""
    #: most requests per minute over all processes
    requests_per_minute: float | None = None
    #: most tokens per minute, prompts and answers together
    tokens_per_minute: float | None = None
    #: most tokens of prompts per minute, where they are counted apart
    input_tokens_per_minute: float | None = None
    #: most tokens of answers per minute, where they are counted apart
    output_tokens_per_minute: float | None = None
    #: most requests in a day (UTC)
    requests_per_day: int | None = None
    #: most calls in flight over all processes
    concurrency: int | None = None
    #: how much of a quota may be used at once after a pause
    burst: timedelta = timedelta(seconds=1)
    #: what the provider reserves of tokens before a call: "max_tokens", "actual", "split" or "uncached"
    charge: str = "max_tokens"
    #: length of answers assumed for calls that give no `max_tokens`
    expected_tokens: int = 1_024
    #: NAME of [llm.models.NAME] that is asked what this one could not answer; empty: none
    escalate_to: str = ""
    #: US dollars per million tokens of prompts, in the place of the price list's
    input_price: float | None = None
    #: US dollars per million tokens of answers
    output_price: float | None = None
    #: US dollars per million tokens of prompts that the provider has in its cache; unless given, as `input_price`
    cached_input_price: float | None = None

    def inherited(self, given: Mapping[str, object], openai: Mapping[str, str]) -> ModelSettings:
        """Return what a further model, whose table is `given`, has of this one: nothing of its quota and price.

        Its endpoint and key only where the model has the same provider, and the key only where it goes to the same
        server. `openai`: endpoint and key that the environment holds for the provider "openai".
        """
        own, source = ModelSettings(), self
        names = ["model", "pool", "escalate_to", *RATES, "requests_per_day", "concurrency", *PRICES]
        provider = self._told(given).provider or "openai"
        if provider != (self.provider or "openai"):
            account = openai if provider == "openai" else {}
            url, key = account.get("base_url", ""), account.get("api_key", "")
            source = replace(self, provider=provider, base_url=url, api_key=key, memo_name="")
        if source._told(given)._server != source._server:
            names.append("api_key")
        if "base_url" in given:
            names.append("memo_name")
        return replace(source, **{name: getattr(own, name) for name in names})

    def _told(self, given: Mapping[str, object]) -> ModelSettings:
        """Return this with what a further model's table says of who is asked; a wrong type is refused elsewhere."""
        told = {name: text for name in ("provider", "base_url", "model") if isinstance(text := given.get(name), str)}
        return replace(self, **({"model": ""} | told))  # type: ignore[arg-type]

    @property
    def _server(self) -> tuple[str, ...]:
        """To whom the key goes. LiteLLM finds the server by the model: "anthropic/…" is another one than "gemini/…"."""
        provider = self.provider or "openai"
        if self.base_url or provider != "litellm":
            return provider, endpoint_of(self.base_url or OPENAI_URL).partition("/")[0]
        return provider, self.model.partition("/")[0]

    @property
    def pool_limits(self) -> PoolLimits:
        """Return the limits of the model's pool."""
        return PoolLimits(
            **{name: getattr(self, name) for name in RATES},
            requests_per_day=self.requests_per_day,
            concurrency=self.concurrency,
            burst=self.burst,
            charge=ChargePolicy(self.charge),
        )

    @property
    def price(self) -> Price | None:
        """Return the price that stands here; None: ask the price list."""
        if self.input_price is None or self.output_price is None:
            return None
        cached = None if self.cached_input_price is None else Decimal(str(self.cached_input_price))
        return Price(Decimal(str(self.input_price)), Decimal(str(self.output_price)), cached)

    def to_llm(self, name: str = "") -> LLMSettings:
        """Return the settings as the gateway takes them; with nothing configured the local model's."""
        configured = self.model or self.base_url or self.api_key
        provider = self.provider or ("openai" if configured else "local")
        # LiteLLM finds the provider by the model: there is none to be assumed.
        models = {"openai": self.model or DEFAULT_MODEL, "litellm": self.model or None}
        return LLMSettings(
            name=name,
            provider=provider,
            model=models.get(provider),
            base_url=self.base_url or None,
            api_key=self.api_key or None,
            style=AnswerStyle(self.style),
            timeout=self.timeout,
            account=self.account,
            pool=self.pool,
            limits=self.pool_limits,
            expected_tokens=self.expected_tokens,
            escalate_to=self.escalate_to or None,
            price=self.price,
            memo_name=self.memo_name,
        )


RATES = ("requests_per_minute", "tokens_per_minute", "input_tokens_per_minute", "output_tokens_per_minute")
PRICES = ("input_price", "output_price", "cached_input_price")
