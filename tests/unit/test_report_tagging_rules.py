"""Files of rules: what they may say, and how they say what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headrace.apps.report.errors import RulesError
from headrace.apps.report.tagging import DEFAULT_RULES, load_rules
from headrace.apps.report.tagging.patterns import MOST_TEXT, UnsafePattern, safe_pattern
from tests.effort import bounded_work

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str, name: str = "rules.yaml") -> Path:
    """A file of rules."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_of_the_docs_is_read(tmp_path: Path) -> None:
    """The page's example is a file that works, and names every key."""
    page = (ROOT / "docs/reference/report-rules.md").read_text("utf-8")
    example = re.search(r"```yaml\n(.+?)```", page, re.DOTALL)
    assert example
    rules = load_rules(written(tmp_path, example[1]))
    assert [module.name for module in rules.modules] == ["Login", "Payment"]
    for key in (*type(rules.confidence).model_fields, *type(rules.thresholds).model_fields):
        assert f"`{key}`" in page or f"{key}:" in example[1]
    assert rules.confidence == DEFAULT_RULES.confidence and rules.thresholds == DEFAULT_RULES.thresholds


def test_json_says_the_same(tmp_path: Path) -> None:
    """Whoever makes rules with a program writes JSON."""
    data = {"modules": [{"name": "Login", "keywords": ["login"]}]}
    assert load_rules(written(tmp_path, json.dumps(data), "r.json")).modules[0].keywords == ("login",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "rules must be a mapping with the key 'modules', got []"),
        ("modules: {", "is not valid YAML"),
        ("modules: [{keywords: [a]}]", "modules[0].name is missing; add it"),
        ("modules: [{name: A, keyword: [a]}]", "modules[0].keyword is not a known key; remove it, got ['a']"),
        ("modules: [{name: ' '}]", "modules[0].name is wrong: string should have at least 1 character, got ' '"),
        ("thresholds: {settle: 2}", "thresholds.settle is wrong: input should be less than or equal to 1, got 2"),
        ("version: 2", "version is wrong: input should be less than or equal to 1, got 2"),
        ("modules: [{name: A, patterns: ['(a+)+']}]", "modules[0].patterns must not repeat a group, got '(a+)+'"),
        ("modules: [{name: A, patterns: ['(']}]", "modules[0].patterns must be regular expressions (missing )"),
        ("modules: [{name: A}, {name: B, aliases: [a]}]", "must name each module once: 'a' is of 'A' and of 'B'"),
        ("a: &x [1]\nb: *x", "aliases (*name) are not supported"),
        ("a: 2021-02-30", "is not valid YAML"),
    ],
)
def test_errors_name_file_key_rule_and_value(tmp_path: Path, text: str, says: str) -> None:
    """Enough to correct the file."""
    path = written(tmp_path, text)
    with pytest.raises(RulesError) as caught:
        load_rules(path)
    assert str(caught.value).startswith(str(path)) and says in str(caught.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """Missing, too large, not UTF-8, broken JSON."""
    with pytest.raises(RulesError, match="cannot be read: No such file"):
        load_rules(tmp_path / "none.yaml")
    with pytest.raises(RulesError, match="larger than 256 KiB"):
        load_rules(written(tmp_path, " " * 300_000))
    (tmp_path / "latin.yaml").write_bytes("é".encode("latin-1"))
    with pytest.raises(RulesError, match="not UTF-8"):
        load_rules(tmp_path / "latin.yaml")
    with pytest.raises(RulesError, match="not valid JSON"):
        load_rules(written(tmp_path, "{", "r.json"))


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("(a+)+b", ")+"),
        ("(a|a)*b", ")*"),
        ("(?:ab){2,}", "){2,}"),
        (r"(a)\1", r"\1"),
        ("(?P<x>a)(?P=x)", "(?P="),
        ("(?x)(a+) +", "(?x)"),
        ("a*a*b", "a*a*b"),
        ("x" * 201, "x" * 20 + "…"),
        ("a?" * 6, "a?" * 6),
        ("}?" * 6, "}?" * 6),
        ("(a|a)" * 6, "(a|a)" * 6),
        ("(a|b|(c|d)?)(e|f|g)(h|i)", "(a|b|(c|d)?)(e|f|g)(h|i)"),
    ],
)
def test_patterns_that_could_run_away_are_refused(pattern: str, part: str) -> None:
    """Each of them takes more than n² steps on some text of n characters, or cannot be judged."""
    with pytest.raises(UnsafePattern) as caught:
        safe_pattern(pattern)
    assert caught.value.part == part


@pytest.mark.parametrize(
    "pattern",
    [
        "log.?in",
        r"pay(ing|ment)? by \w+",
        "[a-z+*]{2,5}x",
        r"a\+\*b+?",
        "支付|退款",
        "(?:a|b)c*",
        "|".join("abcdefgh" * 8),
        r"\(x|y\)",
    ],
)
def test_ordinary_patterns_pass(pattern: str) -> None:
    """What rules need is allowed."""
    assert safe_pattern(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", [".*x", "a?a?a?a?a?[^b]*b", "(a|a)(a|a)(a|a)(a|a)(a|a)[^b]*b", r"\w+x"])
def test_the_worst_allowed_pattern_ends_soon(pattern: str) -> None:
    """On the longest text that is looked at."""
    with bounded_work(2):
        assert safe_pattern(pattern).search("a" * MOST_TEXT) is None
