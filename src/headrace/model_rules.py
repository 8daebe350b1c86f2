"""What `[llm]` and `[llm.models.NAME]` may say. A mistake is told with its place, the rule, the value and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.llm import AnswerStyle, endpoint_of
from headrace.model.quota import MAX_POOL_NAME, POOL_NAME_RULE, ChargePolicy, is_pool_name
from headrace.model_pools import Written
from headrace.model_settings import PRICES, PROVIDERS, RATES, ModelSettings

_MODELS = "llm.models."
_LONGEST_BURST = timedelta(hours=1)
_LEAVE_OUT = "leave it out where there is no limit"
#: From, to, and what to do. Stores hold calls per day and in flight as 32 bits, tokens and nanodollars as 64.
_BOUNDS: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(RATES, (0.001, 1e9, _LEAVE_OUT)),
    "requests_per_day": (1, 1e9, _LEAVE_OUT),
    "concurrency": (1, 1e6, _LEAVE_OUT),
    "expected_tokens": (1, 1e7, "write how long answers are expected to be"),
    **dict.fromkeys(PRICES, (0, 1e6, "write US dollars per million tokens, or leave it out for the price list's")),
}
#: Characters at most, and whether there must be one.
_TEXTS = {"account": (64, 1), "model": (255, 0), "memo_name": (255, 0)}


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    table: ModelSettings
    written: Written

    def require(self, holds: bool, key: str, rule: str, *, fix: str = "", shown: str | None = None) -> None:
        """Raise ConfigError unless the rule holds; `shown` stands for a value that may be secret."""
        if holds:
            return
        where, raw = self.written(self.name, key)
        value = getattr(self.table, key) if raw is None else raw
        if isinstance(value, timedelta):
            value = format_duration(value)
        # It shows values in the way and length in which all errors do.
        told = str(InvalidInputError(where, rule, value)) if shown is None else f"{where} {rule}, got {shown}"
        raise ConfigError(f"{told}; {fix}" if fix else told)


def check_models(models: Mapping[str, ModelSettings], written: Written) -> None:
    """Check the rules of models by the section they stand in. Raises ConfigError."""
    for name, table in models.items():
        section = _Section(name, table, written)
        _check_words(section)
        _check_escalation(section, models)
        _check_model(section)
        _check_numbers(section)
        _check_texts(section)
        _check_durations(section)
        _check_address(section)


def _check_words(section: _Section) -> None:
    for key, allowed in {
        "style": [style.value for style in AnswerStyle],
        "charge": [policy.value for policy in ChargePolicy],
        "provider": ["", *PROVIDERS],
    }.items():
        shown = ", ".join(filter(None, allowed))
        section.require(getattr(section.table, key) in allowed, key, f"must be one of {shown}")


def _check_escalation(section: _Section, models: Mapping[str, ModelSettings]) -> None:
    asked = section.table.escalate_to
    others = [name.removeprefix(_MODELS) for name in models if name.startswith(_MODELS) and name != section.name]
    rule = "must be the name of another model, a table [llm.models.NAME] of headrace.toml"
    fix = f"names that there are: {', '.join(others)}" if others else "there is no other yet: write that table"
    section.require(not asked or asked in others, "escalate_to", rule, fix=f"{fix}, or leave escalate_to out")


def _check_model(section: _Section) -> None:
    """`[llm]` alone may go without: then doctor says so, and what needs no model works."""
    table, rule = section.table, "must name a model as LiteLLM does, provider/model"
    named = bool(table.model) or table.provider != "litellm" or not section.name.startswith(_MODELS)
    section.require(named, "model", rule, fix='write it, or provider = "openai"')


def _check_texts(section: _Section) -> None:
    table = section.table
    for key, (most, least) in _TEXTS.items():
        text = getattr(table, key)
        fits = least <= len(text) <= most and text.isprintable()
        section.require(fits, key, f"must be {'1 to' if least else 'at most'} {most} printable characters")
    section.require(not table.pool or is_pool_name(table.pool), "pool", f"must be {POOL_NAME_RULE}")
    name = table.to_llm().pool_name
    rule = (
        f"must be given: the pool would be named by provider, account and model, in {len(name)} characters of at most"
    )
    section.require(is_pool_name(name), "pool", f"{rule} {MAX_POOL_NAME}", fix='write pool = "NAME"')


def _check_numbers(section: _Section) -> None:
    for key, (least, most, fix) in _BOUNDS.items():
        value = getattr(section.table, key)
        rule = f"must be from {least:,.10g} to {most:,.10g}"
        section.require(value is None or least <= value <= most, key, rule, fix=fix)
    missing = [key for key in ("input_price", "output_price") if getattr(section.table, key) is None]
    rule = "and output_price must be given together"
    shown = f"no {missing[0]}" if missing else None
    section.require(len(missing) != 1, "input_price", rule, shown=shown)


def _check_durations(section: _Section) -> None:
    section.require(section.table.timeout > timedelta(), "timeout", "must be longer than zero")
    rule = f"must be longer than zero and at most {format_duration(_LONGEST_BURST)}"
    section.require(timedelta() < section.table.burst <= _LONGEST_BURST, "burst", rule)


def _check_address(section: _Section) -> None:
    url = section.table.base_url
    scheme, found, _ = url.partition("://")
    fits = not url or (url.isprintable() and " " not in url and endpoint_of(url).partition("/")[0] != "")
    fits = fits and (not url or urlsplit(url).scheme in ("http", "https"))
    # Never the whole value: a password may stand in it.
    shown = f"{scheme[:20]!r}://…" if found else "a text without ://"
    section.require(fits, "base_url", "must be a URL such as http://127.0.0.1:8000/v1", shown=shown)
