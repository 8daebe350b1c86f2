"""Ports, and items that are sent to one or another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes.base import Call, Item, Items
from headrace.nodes.parameters import Parameters


def count_of(parameters: Mapping[str, Any], path: str, usual: int, *, least: int, most: int) -> int:
    """Return how many ports parameters ask for, as they were written; `usual` where that is no such number.

    >>> count_of({"numberInputs": "3"}, "numberInputs", 2, least=2, most=10)
    3
    """
    try:
        return Parameters(parameters).whole(path, usual, least, most)
    except InvalidInputError:
        return usual


def route(call: Call, ports: int, choose: Callable[[Parameters], Iterable[int]]) -> list[Items]:
    """Return items by port: each goes, paired with itself, to the ports that `choose` names for it."""
    out: list[Items] = [[] for _ in range(ports)]
    indices = count()

    def send(item: Item, at: Parameters) -> None:
        paired = {**item, "pairedItem": {"item": next(indices)}}
        for port in choose(at):
            out[port].append(paired)

    call.each(send)
    return out
