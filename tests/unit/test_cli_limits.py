"""`headrace limits` on the memory store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import App, Limit
from headrace.model.breaker import BreakerRule
from headrace.model.limits import Declared, Rate
from tests.unit.cli_runner import CommandLine, as_client, command_line


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def app(headrace: CommandLine) -> App:
    """An app whose limits a worker has declared: a cap, a rate and a breaker; its queue has a job."""
    app = headrace.app()

    @app.task(name="render", queue="llm", concurrency=3, limits=[Limit("openai", "60/m", burst=2)])
    async def render() -> None: ...

    async def declare() -> None:
        assert headrace.stores.admission is not None
        await headrace.stores.admission.declare_limits(
            Declared(
                caps={"task:render": 3},
                rates={"openai": Rate.parse("60/m", burst=2)},
                breakers={"openai": BreakerRule()},
            )
        )
        await render.options(fair_key="tenant-7").enqueue()

    as_client(app, declare)
    return app


def one(headrace: CommandLine, kind: str) -> dict[str, Any]:
    """Return the only limit of a kind."""
    [found] = headrace.json("limits", "list", "--kind", kind)[kind]
    assert isinstance(found, dict)
    return found


def test_nothing_is_limited_at_first(headrace: CommandLine) -> None:
    """An empty store has no limits, and says so."""
    assert headrace.json("limits", "list") == {"caps": [], "rates": [], "breakers": [], "shares": []}
    assert "Nothing is limited" in headrace.text("limits", "list")


@pytest.mark.usefixtures("app")
def test_limits_are_listed_with_what_is_used(headrace: CommandLine) -> None:
    """Caps show what runs, rates what is left and when one unit passes, breakers their state."""
    assert one(headrace, "caps") == {
        "key": "task:render", "cap": 3, "running": 0, "declared": 3, "override": None,
    }  # fmt: skip
    rate = one(headrace, "rates")
    assert (rate["name"], rate["level"], rate["free_in"]) == ("openai", 2.0, "0s")
    assert one(headrace, "breakers")["state"] == "closed"
    text = headrace.text("limits", "list")
    assert all(word in text for word in ("task:render", "1/s", "5 in a row", "now"))


@pytest.mark.usefixtures("app")
def test_buckets_that_count_calls_of_models_are_listed_only_when_asked(headrace: CommandLine) -> None:
    """A pool's buckets are no limits of jobs; `--all` has them."""
    buckets = {"llm:openai:gpt-x:requests", "pool:openai:gpt-x", "jobs:openai:gpt-x"}
    asyncio.run(headrace.stores.limiter.declare(dict.fromkeys(buckets, Rate(1.0, 1.0))))

    assert one(headrace, "rates")["name"] == "openai"
    assert "gpt-x" not in headrace.text("limits", "list")
    rates = headrace.json("limits", "list", "--all")["rates"]
    assert {rate["name"] for rate in rates} == {"openai", *buckets}


@pytest.mark.usefixtures("app")
def test_a_cap_is_set_and_reset(headrace: CommandLine) -> None:
    """An operator's cap holds until it is reset to the declared one."""
    assert headrace.text("limits", "set-cap", "task:render", 1) == "task:render: at most 1 at once\n"
    assert (one(headrace, "caps")["cap"], one(headrace, "caps")["declared"]) == (1, 3)
    assert headrace.json("limits", "reset", "task:render") == {
        "reset": "task:render", "kinds": ["cap"], "declared": {"cap": 3},
    }  # fmt: skip
    assert one(headrace, "caps")["cap"] == 3


@pytest.mark.usefixtures("app")
def test_a_queue_that_is_there_can_be_capped(headrace: CommandLine) -> None:
    """A queue with jobs needs no declaration before an operator caps it."""
    headrace.text("limits", "set-cap", "queue:llm", 2)
    keys = {cap["key"] for cap in headrace.json("limits", "list")["caps"]}
    assert keys == {"queue:llm", "task:render"}


@pytest.mark.usefixtures("app")
def test_a_concurrency_key_of_a_queue_that_is_there_can_be_capped(headrace: CommandLine) -> None:
    """Its cap is listed with the others until it is reset, or forgotten."""
    assert headrace.text("limits", "set-cap", "key:llm:ann: b", 2) == "key:llm:ann: b: at most 2 at once\n"
    caps = {cap["key"]: cap for cap in headrace.json("limits", "list")["caps"]}
    assert (caps["key:llm:ann: b"]["declared"], caps["key:llm:ann: b"]["cap"]) == (None, 2)
    assert headrace.text("limits", "reset", "key:llm:ann: b") == "key:llm:ann: b: the key_limit of each job\n"
    headrace.text("limits", "set-cap", "key:llm:ann: b", 0)
    assert headrace.text("limits", "forget", "key:llm:ann: b") == "key:llm:ann: b: cap forgotten\n"
    assert one(headrace, "caps")["key"] == "task:render"


@pytest.mark.usefixtures("app")
def test_a_rate_is_set_and_reset(headrace: CommandLine) -> None:
    """An operator's rate holds with its burst until it is reset."""
    assert headrace.text("limits", "set-rate", "openai", "2/s", "--burst", 5) == "openai: 2/s, burst 5\n"
    assert one(headrace, "rates")["rate"] == {"per_second": 2.0, "burst": 5.0}
    assert headrace.text("limits", "reset", "openai") == "openai: rate limit 1/s, as declared\n"
    assert one(headrace, "rates")["rate"] == {"per_second": 1.0, "burst": 2.0}


@pytest.mark.usefixtures("app")
def test_a_weight_is_set(headrace: CommandLine) -> None:
    """The weight of a fair key is listed once it is set."""
    headrace.text("limits", "set-weight", "llm", "tenant-7", 2)
    assert one(headrace, "shares")["weight"] == 2.0
    assert "tenant-7" in headrace.text("limits", "list", "--kind", "shares")


@pytest.mark.usefixtures("app")
def test_a_breaker_is_opened_and_closed_by_hand(headrace: CommandLine) -> None:
    """A breaker that is open says when it tries again."""
    headrace.text("limits", "set-breaker", "openai", "open")
    breaker = one(headrace, "breakers")
    assert (breaker["state"], breaker["record"]["retry_at"] is not None) == ("open", True)
    assert "open" in headrace.text("limits", "list", "--kind", "breakers")
    assert headrace.json("limits", "set-breaker", "openai", "closed") == {"breaker": "openai", "state": "closed"}
    assert one(headrace, "breakers")["state"] == "closed"


@pytest.mark.usefixtures("app")
def test_what_is_forgotten_limits_nothing(headrace: CommandLine) -> None:
    """All that a name stands for goes, with what was set for it; setting a weight back to 1 leaves no row either."""
    headrace.text("limits", "set-cap", "task:render", 1)
    headrace.text("limits", "set-weight", "llm", "tenant-7", 2)
    headrace.text("limits", "set-weight", "llm", "tenant-7", 1)
    assert headrace.text("limits", "forget", "task:render") == "task:render: cap forgotten\n"
    assert headrace.json("limits", "forget", "openai") == {"forgotten": "openai", "kinds": ["rate", "breaker"]}
    assert headrace.json("limits", "list") == {"caps": [], "rates": [], "breakers": [], "shares": []}


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["set-cap", "task:rendr", "1"], 5, "task:render"),
        (["set-cap", "task:rendr", "1"], 5, "only for jobs whose task declares concurrency=; --force sets it"),
        (["set-rate", "task:render", "1/s"], 5, "only for jobs whose task declares rate_limit=; --force sets it"),
        (["set-cap", "rendr", "1"], 5, "queue:llm"),
        (["set-cap", "rendr", "1"], 5, "a cap is named task:NAME"),
        (["set-cap", "rendr", "1", "--force"], 2, "task:NAME"),
        (["set-cap", "key:lmm:ann", "1"], 5, "queue:llm"),
        (["set-cap", "key:llm", "1", "--force"], 2, "its KEY must be 1 to 128 printable characters, got ''"),
        (["set-cap", "key:L M:ann", "1", "--force"], 2, "its QUEUE must"),
        (["set-cap", "task:render", "-1"], 2, "cap must be a whole number from 0 to 1,000,000, got '-1'"),
        (["set-cap", "task:render", "abc"], 2, "cap must be a whole number from 0 to 1,000,000, got 'abc'"),
        (["set-cap", "task:render", "1.5"], 2, "cap must be a whole number"),
        (["set-cap", "task:render", "1", "--forec"], 2, "No such option"),
        (["set-rate", "openai", "-1/s"], 2, "rate must be a number of units per s, m, h or d"),
        (["set-rate", "openai", "1/s", "--burst", "much"], 2, "burst must be a number such as 2 or 0.5, got 'much'"),
        (["set-weight", "llm", "tenant-7", "-2"], 2, "weight must be a number from 0.001 to 1,000"),
        (["set-weight", "llm", "tenant-7", "heavy"], 2, "weight must be a number such as 2 or 0.5, got 'heavy'"),
        (["set-rate", "opnai", "60/m"], 5, "openai"),
        (["set-rate", "openai", "sixty"], 2, "30/m"),
        (["set-rate", "openai", "60/m", "--burst", "0"], 2, "burst"),
        (["set-weight", "lm", "tenant-7", "2"], 5, "llm"),
        (["set-weight", "llm", "tenant-7", "0"], 2, "weight"),
        (["set-breaker", "opnai", "open"], 5, "openai"),
        (["set-breaker", "openai", "ajar"], 2, ""),
        (["reset", "opnai"], 5, "openai"),
        (["forget", "opnai"], 5, "no cap, rate limit or breaker 'opnai'; there are: openai, task:render"),
        (["forget", "open ai"], 2, "name"),
    ],
)
def test_a_slip_is_told_with_what_there_is(headrace: CommandLine, words: list[str], code: int, said: str) -> None:
    """Unknown names are not found and wrong values refused; nothing is changed then."""
    before = headrace.json("limits", "list")
    refused, error = headrace.refusal("limits", *words)
    assert (refused, said in error["message"]) == (code, True)
    assert headrace.json("limits", "list") == before


@pytest.mark.usefixtures("app")
def test_a_name_can_be_set_before_it_is_used(headrace: CommandLine) -> None:
    """With --force a limit is set for what comes later."""
    headrace.text("limits", "set-cap", "task:later", 1, "--force")
    headrace.text("limits", "set-rate", "later", "1/s", "--force")
    listed = headrace.json("limits", "list")
    assert "task:later" in {cap["key"] for cap in listed["caps"]}
    assert "later" in {rate["name"] for rate in listed["rates"]}


@pytest.mark.usefixtures("app")
def test_a_limit_of_a_task_that_declares_none_says_so(headrace: CommandLine) -> None:
    """Set by force it is told to hold for nothing yet, and having been set once makes it no known one."""
    said = headrace.text("limits", "set-cap", "task:later", 1, "--force")
    assert said == "task:later: at most 1 at once; it holds only for jobs whose task declares concurrency=\n"
    said = headrace.text("limits", "set-rate", "task:render", "1/s", "--force")
    assert said == "task:render: 1/s, burst 1; it holds only for jobs whose task declares rate_limit=\n"
    assert headrace.refusal("limits", "set-cap", "task:later", 2)[0] == 5
    assert headrace.refusal("limits", "set-rate", "task:render", "2/s")[0] == 5
    assert headrace.text("limits", "set-cap", "task:render", 1, "--force") == "task:render: at most 1 at once\n"
    headrace.text("limits", "reset", "task:later")


@pytest.mark.usefixtures("app")
def test_a_reset_says_where_nothing_is_declared(headrace: CommandLine) -> None:
    """A limit that only an operator set is gone after a reset, which is not called as declared."""
    headrace.text("limits", "set-cap", "queue:llm", 2)
    headrace.text("limits", "set-rate", "queue:llm", "5/s")
    said = headrace.text("limits", "reset", "queue:llm")
    assert said == (
        "queue:llm: no cap any more, for none is declared; no rate limit any more, for none is declared\n"
    )  # fmt: skip


def test_a_reset_of_a_breaker_names_the_command_that_closes_it(headrace: CommandLine) -> None:
    """A breaker has nothing to reset: the error names `set-breaker`; for a name that nobody knows it does not."""

    async def declare() -> None:
        assert headrace.stores.admission is not None
        await headrace.stores.admission.declare_limits(Declared(breakers={"model": BreakerRule()}))

    as_client(headrace.app(), declare)
    code, error = headrace.refusal("limits", "reset", "model")
    assert (code, "`headrace limits set-breaker model closed` closes" in error["message"]) == (5, True)
    assert "set-breaker" not in headrace.refusal("limits", "reset", "modle")[1]["message"]


def test_an_open_breaker_says_that_it_tries_again_now(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its cooldown the next job is the probe, so it tries again now; its cooldown is written as it is declared."""
    rules = {"slow": BreakerRule(cooldown=timedelta(seconds=90)), "quick": BreakerRule(cooldown=timedelta(seconds=4))}

    async def declare() -> None:
        assert headrace.stores.admission is not None
        await headrace.stores.admission.declare_limits(Declared(breakers=rules))

    as_client(headrace.app(), declare)
    headrace.text("limits", "set-breaker", "quick", "open")
    ahead, later = datetime.now(UTC).date().isoformat()[:2], datetime.now(UTC) + timedelta(minutes=1)
    quick, slow = headrace.text("limits", "list").splitlines()[1:3]
    assert (quick.split()[:3], quick.split()[3][:2]) == (["quick", "open", "0"], ahead)
    assert (quick.split()[-2], slow.split()[-2], "now" in slow) == ("4s", "1m30s", False)
    monkeypatch.setattr("headrace.clock.SystemClock.now", lambda _: later)
    assert headrace.text("limits", "list").splitlines()[1].split()[:4] == ["quick", "open", "0", "now"]


@pytest.mark.parametrize("text", ["0.5/d", "0.001/d", "7/d", "1000.5/s", "1000000000/s", "1/s", "90/m", "0.3/h"])
def test_a_rate_is_shown_as_it_can_be_set(headrace: CommandLine, text: str) -> None:
    """What the list shows of any rate is what `set-rate` takes, and means the same."""
    headrace.text("limits", "set-rate", "queue:any", text, "--force")
    shown = headrace.text("limits", "list", "--kind", "rates").splitlines()[1].split()[1]
    assert len(shown) <= max(len(text), 7)
    assert Rate.parse(shown).per_second == pytest.approx(Rate.parse(text).per_second, rel=1e-6)


def test_a_rate_without_a_short_form_is_shown_as_it_can_be_set() -> None:
    """A rate of code that no decimal meets is shown in few digits, without an exponent."""
    for per_second in (1 / 7, 1 / 7e7 * 10, 12_345.678901, 1 / 3e5):
        shown = Rate(per_second, 1.0).text
        assert len(shown) <= 12
        assert Rate.parse(shown).per_second == pytest.approx(per_second, rel=2e-6)
