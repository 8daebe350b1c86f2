"""Mistakes about models are found when settings are read, and told by the place at which they were made."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.errors import ConfigError
from headrace.model.provider_errors import (
    ProviderAuthError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from headrace.settings import Settings, load_settings

HUGE = "99999999999999999999"


def load(tmp_path: Path, text: str = "", **environ: str) -> Settings:
    """Load settings from a file with `text` and an environment."""
    file = tmp_path / "headrace.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(environ=environ, file=file)


def mistake(tmp_path: Path, text: str = "", **environ: str) -> str:
    """Return what is said of wrong settings."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    return str(caught.value)


#: key and value as TOML → words of the rule, and the value as it is shown
VALUES = {
    "tokens beyond every store": (f"expected_tokens = {HUGE}", "from 1 to 10,000,000", HUGE),
    "no tokens": ("expected_tokens = 0", "from 1 to 10,000,000", "0"),
    "a day beyond every store": (f"requests_per_day = {HUGE}", "from 1 to 1,000,000,000", HUGE),
    "calls in flight beyond every store": (f"concurrency = {HUGE}", "from 1 to 1,000,000", HUGE),
    "a rate below zero": ("requests_per_minute = -1", "from 0.001 to 1,000,000,000", "-1"),
    "a rate without end": ("requests_per_minute = inf", "from 0.001 to 1,000,000,000", "inf"),
    "a rate that is no number": ("tokens_per_minute = nan", "from 0.001 to 1,000,000,000", "nan"),
    "a number that no float holds": (f"tokens_per_minute = 1{'0' * 400}", "must be a number", "1000"),
    "a burst of years": ('burst = "1000d"', "longer than zero and at most 1h", "'1000d'"),
    "no burst": ('burst = "0s"', "longer than zero and at most 1h", "'0s'"),
    "no time": ("timeout = 0", "longer than zero", "0"),
    "an account with a NUL": ('account = "é\\u0000"', "1 to 64 printable characters", "'é\\x00'"),
    "no account": ('account = ""', "1 to 64 printable characters", "''"),
    "a model with a NUL": ('model = "m\\u0000"', "at most 255 printable characters", "'m\\x00'"),
    "a long name for the memo": (f'memo_name = "{"m" * 256}"', "at most 255 printable characters", "'mmm"),
    "a long pool": (f'pool = "{"p" * 300}"', "1 to 128 printable characters", "'ppp"),
    "a pool of two lines": ('pool = "a\\nb"', "1 to 128 printable characters", "'a\\nb'"),
    "an address of another protocol": ('base_url = "ftp://u:hush@x"', "a URL such as http://", "'ftp'://…"),
    "an address without a protocol": ('base_url = "hush"', "a URL such as http://", "a text without ://"),
    "an address without a host": ('base_url = "http:///v1"', "a URL such as http://", "'http'://…"),
    "an address that cannot be read": ('base_url = "https://[b.example/v1"', "a URL such as http://", "'https'://…"),
    "an unknown style": ('style = "polite"', "one of strict_schema, json, plain", "'polite'"),
    "an unknown model above": ('escalate_to = "strong"', "the name of another model", "'strong'"),
    "a negative price": ("cached_input_price = -1", "from 0 to 1,000,000", "-1"),
}  # fmt: skip


@pytest.mark.parametrize("section", ["llm", "llm.models.b"])
@pytest.mark.parametrize(("line", "rule", "value"), VALUES.values(), ids=list(VALUES))
def test_a_wrong_value_is_named_by_section_and_key(
    tmp_path: Path, section: str, line: str, rule: str, value: str
) -> None:
    """The error names the key of the table that holds it, the rule and the value as it is written, and no password."""
    said = mistake(tmp_path, f"[{section}]\n{line}")
    assert f"headrace.toml: {section}.{line.split(' = ')[0]} must be " in said
    assert rule in said
    assert f"got {value}" in said
    assert "hush" not in said.replace("got a text", "")
    assert "HEADRACE_LLM" not in said


@pytest.mark.parametrize("price", ["1e30", "inf", "nan"])
def test_a_price_that_no_call_can_cost_is_refused(tmp_path: Path, price: str) -> None:
    """It is found when settings are read, not when a call is priced."""
    said = mistake(tmp_path, f"[llm.models.b]\ninput_price = {price}\noutput_price = 1")
    assert "llm.models.b.input_price must be from 0 to 1,000,000, got" in said
    assert "US dollars per million tokens" in said


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HEADRACE_LLM_REQUESTS_PER_DAY", HUGE), ("HEADRACE_LLM_BURST", "1000d"), ("HEADRACE_LLM_ACCOUNT", "a\nb"),
        ("HEADRACE_LLM_BASE_URL", "ftp://x"), ("OPENAI_BASE_URL", "ftp://x"), ("HEADRACE_LLM_CONCURRENCY", "²"),
        ("HEADRACE_LLM_CONCURRENCY", "--5"), ("HEADRACE_LLM_INPUT_PRICE", "²"), ("HEADRACE_LLM_BURST", "²"),
    ],
)  # fmt: skip
def test_a_wrong_value_of_the_environment_is_named_by_its_variable(tmp_path: Path, variable: str, value: str) -> None:
    """Who set a variable need not find out which key it stands for."""
    assert mistake(tmp_path, **{variable: value}).startswith(f"{variable} must ")


def test_an_address_that_a_further_model_takes_from_the_environment_is_named(tmp_path: Path) -> None:
    """`[llm]` asks another provider, so that the variable counts for the further model alone."""
    text = '[llm]\nprovider = "litellm"\nmodel = "a/b"\n[llm.models.b]\nprovider = "openai"'
    said = mistake(tmp_path, text, OPENAI_BASE_URL="ftp://x")
    assert "llm.models.b.base_url, taken from OPENAI_BASE_URL, must be a URL" in said


def test_a_name_of_a_pool_that_would_be_too_long_must_be_given(tmp_path: Path) -> None:
    """Provider, account and model make a pool's name unless one is given."""
    model = "m" * 200
    assert 'write pool = "NAME"' in mistake(tmp_path, f'[llm]\nmodel = "{model}"')
    assert load(tmp_path, f'[llm]\nmodel = "{model}"\npool = "p"').llm_settings().pool_name == "p"


def test_a_model_above_is_another_one(tmp_path: Path) -> None:
    """It exists, is not the model itself, and may have a point in its name; the error says how to define one."""
    assert "there is no other yet: write that table" in mistake(tmp_path, '[llm]\nescalate_to = "b"')
    text = '[llm.models.b]\nescalate_to = "b"\n[llm.models."c.1"]\n'
    said = mistake(tmp_path, text)
    assert "llm.models.b.escalate_to must be the name of another model" in said
    assert "names that there are: c.1" in said
    assert load(tmp_path, text.replace('"b"', '"c.1"')).llm_settings("b").escalate_to == "c.1"


def test_a_further_model_of_litellm_has_a_name(tmp_path: Path) -> None:
    """The error names the table's own key: no model is taken from `[llm]`."""
    said = mistake(tmp_path, '[llm]\nprovider = "litellm"\nmodel = "a/b"\n[llm.models.c]\n')
    assert "llm.models.c.model must name a model as LiteLLM does" in said


@pytest.mark.parametrize(
    ("kind", "key"),
    [(ProviderUnavailableError, "base_url"), (ProviderTimeoutError, "timeout"), (ProviderAuthError, "api_key")],
)
def test_errors_of_calls_name_the_key_of_a_further_model_too(kind: type[ProviderError], key: str) -> None:
    """The variables of the environment count for `[llm]` alone."""
    assert f"{key} ([llm.models.NAME], HEADRACE_LLM_{key.upper()})" in str(kind())


def test_prices_are_given_together(tmp_path: Path) -> None:
    """It is said which one is missing."""
    said = mistake(tmp_path, "[llm]\ninput_price = 1")
    assert "llm.input_price and output_price must be given together, got no output_price" in said


def test_a_number_of_too_many_digits_is_no_toml(tmp_path: Path) -> None:
    """Python refuses to read it, which is told as a mistake in the file."""
    assert "cannot be read as TOML" in mistake(tmp_path, f"[llm]\nexpected_tokens = {'9' * 5000}")


def test_the_greatest_values_that_are_allowed(tmp_path: Path) -> None:
    """Bounds are within the rules."""
    lines = (
        "expected_tokens = 10_000_000", "requests_per_day = 1_000_000_000", "concurrency = 1_000_000",
        "requests_per_minute = 1e9", "tokens_per_minute = 0.001", 'burst = "1h"', f'pool = "{"p" * 128}"',
        "input_price = 1e6", "output_price = 0", f'account = "{"a" * 64}"',
    )  # fmt: skip
    assert load(tmp_path, "\n".join(["[llm]", *lines])).llm.concurrency == 1_000_000
