"""The memory store and PostgreSQL answer alike and read alike, whatever is done to them."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.machine.side_by_side import SideBySide


class Quick(SideBySide):
    """The machine on both stores."""


class Long(SideBySide):
    """The same, for the long run."""


Quick.TestCase.settings = settings(max_examples=50, stateful_step_count=40, database=None, print_blob=True)
Long.TestCase.settings = settings(max_examples=200, stateful_step_count=60, database=None, print_blob=True)


class TestSideBySide(Quick.TestCase):  # type: ignore[misc,name-defined]
    """Random operations get the same answers from both stores and leave both reading the same."""


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestSideBySideAtLength(Long.TestCase):  # type: ignore[misc,name-defined]
    """The same over many more operations."""
