"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

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

PACKAGE = Path(headrace.__path__[0])
#: Those with an example somewhere in their text.
MODULES = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text("utf-8")
]


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ABSENT])
def test_examples_of_a_module_do_what_they_say(name: str) -> None:
    """Every `>>>` of the module gives what stands below it."""
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0
