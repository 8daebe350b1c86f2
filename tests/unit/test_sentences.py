"""Sentences of the rules in Chinese: each text has its words, and pages in Chinese say nothing in English."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import App, Snooze
from headrace.dashboard.words import words_of
from tests.unit.dashboard_calls import pages
from tests.waiting import wait_until

SOURCE = Path(headrace.__file__).parent
#: Makers of sentences, with which of their arguments are texts.
MAKERS = {"say": slice(0, 1), "counted": slice(1, 3)}
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}", re.IGNORECASE)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of the sentences that a module makes; each has to stand where its sentence is made."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            for given in node.args[MAKERS[node.func.id]]:
                for text in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                    assert isinstance(text, ast.Constant), f"{path}:{node.lineno}: no text that can be found"
                    yield text.value


def modules() -> list[Path]:
    """Return the modules that make sentences, without the one that defines them."""
    found = (path for path in SOURCE.rglob("*.py") if path.name != "sentence.py")
    return [path for path in found if "headrace.model.sentence import" in path.read_text(encoding="utf-8")]


def test_every_sentence_has_its_words() -> None:
    """In Chinese, with the same places for values."""
    texts, words = {text for path in modules() for text in texts_of(path)}, words_of("zh")
    assert "it is next in queue {queue}: a worker with a free slot takes it" in texts
    assert "min_workers is {least}; {work}" in texts
    assert not texts - set(words), f"without Chinese words: {sorted(texts - set(words))}"
    for text in texts:
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", words[text])), text
