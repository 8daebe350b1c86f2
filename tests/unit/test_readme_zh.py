"""The Chinese README says what the English one says: the same snippets, which are run once, and the same parts."""

from __future__ import annotations

import re

from tools import check_docs

BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ENGLISH, CHINESE = (
    (check_docs.ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")
)  # fmt: skip


def test_its_snippets_are_those_of_the_readme() -> None:
    """Whoever changes a snippet of one changes that of the other; `tests/acceptance/test_readme.py` runs them."""
    assert BLOCK.findall(CHINESE) == BLOCK.findall(ENGLISH)
    assert len(BLOCK.findall(CHINESE)) >= 8


def test_it_has_the_same_parts() -> None:
    """No section and no point of a list of the one is missing in the other."""
    for mark in (r"^## ", r"^- \*\*"):
        assert len(re.findall(mark, CHINESE, re.MULTILINE)) == len(re.findall(mark, ENGLISH, re.MULTILINE)), mark


def test_each_leads_to_the_other() -> None:
    """The first lines of both have the link."""
    assert "(README.zh-CN.md)" in "".join(ENGLISH.splitlines()[:4])
    assert "(README.md)" in "".join(CHINESE.splitlines()[:4])
