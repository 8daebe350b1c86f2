"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headrace

MODULES = [
    module.name
    for module in pkgutil.walk_packages(headrace.__path__, "headrace.")
    if not module.name.endswith(("__main__", ".child"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_do_what_they_say(name: str) -> None:
    """Every `>>>` of the module gives what stands below it."""
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0
