"""Prices: exact sums in nanodollars, own prices first, and unknown where nobody said."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import InvalidInputError
from headrace.model.money import NANO, show_money, to_dollars, to_nano
from headrace.model.prices import Cost, Price
from headrace.model.usage import Usage
from headrace.providers.prices import GenaiPrices, PriceTable

MILLION = 1_000_000
CHEAP = Price(Decimal("0.15"), Decimal("0.60"))


class NoPrices:
    """A list without a price; it notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def cost(self, provider: str, model: str, usage: Usage) -> Cost | None:
        """Unknown."""
        self.asked.append((provider, model))
        return None


def usage(asked: int = 0, answered: int = 0, cached: int = 0) -> Usage:
    """The usage of a call."""
    return Usage(input_tokens=asked, output_tokens=answered, cached_tokens=cached, calls=1)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cost_is_its_parts_within_a_nanodollar(asked: int, answered: int, cached: int) -> None:
    """Fresh input, cached input and output have each their price; nothing is counted twice or lost."""
    cached = min(cached, asked)
    price = Price(Decimal("3"), Decimal("15"), Decimal("0.3"))
    exact = (3 * (asked - cached) + Decimal("0.3") * cached + 15 * answered) / MILLION * NANO

    assert abs(price.cost(usage(asked, answered, cached)).nano - exact) <= Decimal("0.5")


def test_cached_input_costs_as_much_where_nothing_else_is_said() -> None:
    """Without a price of its own the cache saves nothing."""
    assert CHEAP.cost(usage(1_000, 10, 900)) == CHEAP.cost(usage(1_000, 10))


@pytest.mark.parametrize("wrong", ["-1", "NaN", "Infinity"])
def test_a_price_below_nothing_is_refused(wrong: str) -> None:
    """A price that would give money back, or that is no number, is named when the table is read."""
    with pytest.raises(InvalidInputError, match="price output must be dollars per million tokens"):
        Price(Decimal(1), Decimal(wrong))


def test_a_price_of_your_own_comes_first_and_the_nearest_before_all() -> None:
    """By provider and model, then by model, then the other list."""
    then = NoPrices()
    table = PriceTable({"m": CHEAP, "azure/m": Price(Decimal(1), Decimal(1), source="contract")}, then)

    assert table.cost("azure", "m", usage(MILLION)) == Cost(NANO, "contract")
    assert table.cost("openai", "m", usage(MILLION)) == Cost(150_000_000, "headrace.toml")
    assert table.cost("openai", "other", usage(MILLION)) is None
    assert then.asked == [("openai", "other")]


def test_the_local_model_is_free_unless_you_say_what_it_costs() -> None:
    """Its price is known, and 0; electricity may be given as a price."""
    assert PriceTable({}, NoPrices()).cost("local", "any", usage(10)) == Cost(0, "local")
    assert PriceTable({"local/any": CHEAP}, NoPrices()).cost("local", "any", usage(MILLION)) == Cost(
        150_000_000, "headrace.toml"
    )


def test_the_list_says_its_version() -> None:
    """Prices change, so each cost says by which list it was made."""
    cost = GenaiPrices().cost("openai", "gpt-4o-mini", usage(1_000, 100, 500))

    assert cost == Cost(172_500, f"genai-prices {version('genai-prices')}")


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "scripted-model"),  # a name that no list knows
        ("no-such-provider", "gpt-4o"),
        ("openrouter", "deepseek/deepseek-r1:free"),  # free today is not a price
        ("openai", "whisper-1"),  # priced, but not by tokens
    ],
)
def test_what_is_not_known_is_unknown_and_never_nothing(provider: str, model: str) -> None:
    """No price is None; 0 would let a budget run without an end."""
    assert GenaiPrices().cost(provider, model, usage(1_000, 100)) is None


def test_a_usage_that_nobody_told_has_no_price() -> None:
    """Where the provider said nothing of tokens, neither own prices nor a list make a cost of it."""
    untold = Usage(calls=1, unpriced=1)

    assert GenaiPrices().cost("openai", "gpt-4o", untold) is None
    assert PriceTable({"gpt-4o": CHEAP}, GenaiPrices()).cost("openai", "gpt-4o", untold) is None


def test_the_endpoint_decides_whose_prices_count() -> None:
    """An OpenAI-compatible endpoint of another company has that company's prices, an unknown one none."""
    groq = GenaiPrices(base_url="https://api.groq.com/openai/v1")
    own = GenaiPrices(base_url="http://127.0.0.1:8000/v1")

    assert groq.cost("openai", "llama-3.3-70b-versatile", usage(1_000)) is not None
    assert GenaiPrices().cost("openai", "llama-3.3-70b-versatile", usage(1_000)) is None
    assert own.cost("openai", "gpt-4o", usage(1_000)) is None


def test_prices_need_no_network_and_are_read_on_first_use() -> None:
    """Importing reads no list, and pricing opens no connection and starts no thread that would."""
    code = """
import socket, sys, threading
def refuse(*args, **kwargs):
    raise AssertionError("a connection was tried")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from headrace.providers.prices import GenaiPrices, PriceTable
from headrace.model.usage import Usage
assert not {"genai_prices", "pydantic", "httpx2"} & set(sys.modules)
prices = PriceTable({}, GenaiPrices())
assert prices.cost("openai", "gpt-4o", Usage(input_tokens=10, calls=1)).nano == 25_000
assert threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_money_is_exact_and_readable() -> None:
    """Dollars become whole nanodollars and back; what is unknown is shown so."""
    assert to_nano(Decimal("0.0000000015")) == 2
    assert to_dollars(to_nano("12.345678901")) == Decimal("12.345678901")
    assert [show_money(nano) for nano in (1_234_500_000, 37_500, -1_500_000_000, 0, None)] == [
        *("$1.23", "$0.000038", "-$1.50", "$0.00", "unknown")
    ]
