"""The plugin of pytest: list it in your conftest.py, `pytest_plugins = ["headrace.testing.plugin"]`.

It is no entry point, which pytest would import in every run, also of projects that only have Headrace installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest

from headrace.app import App
from headrace.testing.apps import in_memory


class PutInMemory(Protocol):
    """What the fixture is: called with an app it returns that app, in memory; without one it returns a new one."""

    def __call__(self, app: App | None = None) -> App: ...


@pytest.fixture
def headrace_app() -> Iterator[PutInMemory]:
    """Put apps onto empty stores in memory until the test ends: `app = headrace_app(shop.app)`; see `in_memory`."""
    with ExitStack() as stack:

        def put(app: App | None = None) -> App:
            return stack.enter_context(in_memory(app))

        yield put
