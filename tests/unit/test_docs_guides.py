"""Guides for those who come from elsewhere: each has its parts, and code of others is marked and can be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools import check_docs

GUIDES = sorted((check_docs.ROOT / "docs" / "howto").glob("from-*.md"))
THEIRS = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"^```python\n.*?^```\n\n```output\n", re.MULTILINE | re.DOTALL)
PARTS = ["What is called what", "Before and after", "Both side by side", "Move what", "Pitfalls"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_has_its_parts(guide: Path) -> None:
    """A table, theirs and ours, living together, the move, and what goes wrong; ours is a program with its output."""
    text = guide.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [part for part in PARTS if not any(heading.startswith(part) for heading in headings)] == []
    assert OURS.search(text)
    assert THEIRS.search(text)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_code_of_others_says_whose_it_is(guide: Path) -> None:
    """It is Python, and its first line says that nothing here runs it."""
    for block in THEIRS.findall(guide.read_text(encoding="utf-8")):
        assert re.match(r"# [A-Z][\w ]+, not run here(: \S+\.py)?\n", block), block
        ast.parse(block)


def test_there_are_five_guides() -> None:
    """None was lost."""
    assert [guide.stem for guide in GUIDES] == [
        "from-celery", "from-dbos", "from-procrastinate", "from-ray-data", "from-rq",
    ]  # fmt: skip
