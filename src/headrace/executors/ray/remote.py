"""What Ray calls in a process of the cluster. Ray finds it by its name, so it must stay where it is."""

from __future__ import annotations

import importlib

import ray


def call(entry: str, luggage: str, word: str) -> bytes:
    """Run the call that a word of its fence names; return how it ended, as JSON."""
    node = ray.get_runtime_context().get_node_id()
    answer: bytes = importlib.import_module(entry).work(luggage, word, node)
    return answer
