"""Models of one pool have its limits in common, wherever they are written."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headrace.model.errors import ConfigError
from headrace.model.quota import ChargePolicy, Dimension, Estimate, Pool
from headrace.model.usage import Usage
from headrace.model_settings import ModelSettings
from headrace.settings import Settings
from tests.unit.quota_world import World, in_world
from tests.unit.test_model_rules import load, mistake

FIRST = '[llm]\nmodel = "a"\npool = "p"\n'
SECOND = '[llm.models.b]\nmodel = "b"\npool = "p"\n'


def pools(settings: Settings) -> list[Pool]:
    """Return the pools of all models, the default one's first."""
    models = [settings.llm_settings(name) for name in ("", *settings.models)]
    return [Pool(model.pool_name, model.limits) for model in models]


@pytest.mark.parametrize("speaker", [0, 1])
def test_calls_of_two_models_in_turn_keep_to_the_one_limit(tmp_path: Path, speaker: int) -> None:
    """A hundred calls of each take as long as two hundred of one, whichever table has the limit: 2 a second."""
    tables = [FIRST, SECOND]
    tables[speaker] += "requests_per_minute = 120\n"
    both = pools(load(tmp_path, "".join(tables)))

    async def scenario(world: World) -> None:
        for number in range(200):
            reservation = await world.quotas[0].reserve(both[number % 2], Estimate(10, 20))
            reservation.settle(Usage(10, 20, calls=1))

    world = in_world(scenario, limits=both[0].limits, flows={Dimension.REQUESTS: 2.0}, processes=1)
    assert both[0] == both[1]
    assert 96 <= world.loop.now <= 105


def test_what_each_table_says_of_a_pool_holds_for_both(tmp_path: Path) -> None:
    """Limits of different kinds come together; so do those that have defaults, also where a default is written."""
    first = '[llm]\npool = "p"\nrequests_per_minute = 120\nconcurrency = 4\nburst = "2s"\n'
    text = f'{first}[llm.models.b]\npool = "p"\ntokens_per_minute = 900\nconcurrency = 4\ncharge = "split"\n'
    alone = '[llm.models.c]\npool = "q"\nburst = "1s"\n[llm.models.d]\npool = "q"\n'
    one, two, three, four = pools(load(tmp_path, text + alone))
    assert one == two
    limits = one.limits
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency) == (120, 900, 4)
    assert (limits.burst, limits.charge) == (timedelta(seconds=2), ChargePolicy.SPLIT)
    assert three == four
    assert (three.limits.burst, three.limits.given) == (timedelta(seconds=1), False)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (("requests_per_minute = 120", "requests_per_minute = 60"), "requests_per_minute"),
        (("requests_per_day = 100", "requests_per_day = 50"), "requests_per_day"),
        (('burst = "1s"', 'burst = "2s"'), "burst"),
        (('charge = "max_tokens"', 'charge = "actual"'), "charge"),
    ],
)
def test_two_limits_of_one_pool_are_refused(tmp_path: Path, said: tuple[str, str], name: str) -> None:
    """The error names both tables, the limit, both values and what to do."""
    told = mistake(tmp_path, f"{FIRST}{said[0]}\n{SECOND}{said[1]}")
    assert f"[llm] and [llm.models.b] share the pool 'p', which has one {name}" in told
    values = [text.split(" = ")[1].strip('"') for text in said]
    for section, value in zip(("llm", "llm.models.b"), values, strict=True):
        assert f"headrace.toml: {section}.{name} = {value if value.isdigit() else repr(value)}" in told
    assert "Write it in one of them alone, or give them pools of their own" in told


def test_a_limit_of_the_environment_is_named_by_its_variable(tmp_path: Path) -> None:
    """It is compared with the tables like one of the file, and told as it was set."""
    text = f"{FIRST}{SECOND}requests_per_minute = 60"
    assert "HEADRACE_LLM_REQUESTS_PER_MINUTE = '120', and headrace.toml: llm.models.b.requests_per_minute = 60" in (
        mistake(tmp_path, text, HEADRACE_LLM_REQUESTS_PER_MINUTE="120")
    )
    assert len(set(pools(load(tmp_path, text, HEADRACE_LLM_REQUESTS_PER_MINUTE="60")))) == 1


def test_models_that_do_not_name_a_pool_share_it_by_provider_account_and_model(tmp_path: Path) -> None:
    """One model in two styles has one quota; another account keeps them apart."""
    plain = '[llm]\nmodel = "a"\nrequests_per_minute = 120\n[llm.models.plain]\nmodel = "a"\nstyle = "plain"\n'
    one, two = pools(load(tmp_path, plain))
    assert one == two == Pool("openai:a", one.limits)
    assert "share the pool 'openai:a'" in mistake(tmp_path, f"{plain}requests_per_minute = 60")
    one, two = pools(load(tmp_path, f'{plain}account = "eu"\nrequests_per_minute = 60'))
    assert (two.name, one.limits.requests_per_minute, two.limits.requests_per_minute) == ("openai:eu:a", 120, 60)


def test_settings_made_in_code_share_as_well() -> None:
    """`App(settings=…)` reads no file: what is not a default was said."""
    first, silent = ModelSettings(pool="p", requests_per_minute=120), ModelSettings(pool="p")
    one, two = pools(Settings(llm=silent, models={"b": first}))
    assert one == two == Pool("p", first.pool_limits)
    other = ModelSettings(pool="p", requests_per_minute=60)
    with pytest.raises(ConfigError, match=r"llm\.requests_per_minute = 120, and llm\.models\.b\.requests_per_minute"):
        Settings(llm=first, models={"b": other}).llm_settings()
    with pytest.raises(KeyError):
        Settings().llm_settings("none")
