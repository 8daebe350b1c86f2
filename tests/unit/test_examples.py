"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headrace
from headrace.bench.catalogue import CONTENDERS
from headrace.bench.machine import installed

#: Adapters of the benchmark to job systems that are not installed here; they hold no examples.
ABSENT = {
    entry.target.partition(":")[0]
    for entry in CONTENDERS.values()
    if any(installed(name) is None for name in entry.needs)
}

MODULES = [
    module.name
    for module in pkgutil.walk_packages(headrace.__path__, "headrace.")
    if not module.name.endswith(("__main__", ".child")) and module.name not in ABSENT
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_do_what_they_say(name: str) -> None:
    """Every `>>>` of the module gives what stands below it."""
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0
