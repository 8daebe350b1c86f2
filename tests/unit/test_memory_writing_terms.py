"""The file of topics and tags: what it may say, and how it is told what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from headrace import ConfigError
from headrace.apps.memory.writing import Terms
from headrace.apps.memory.writing.terms import Limits

GOOD = """
language: zh
strict: true
topics:
  - name: Garden Work
    label: {zh: 园艺}
    description: {en: what grows there, zh: 种了什么}
    sub_topics: [trees, {name: beds, description: vegetables}]
  - weather
more_topics:
  - name: pets
tags:
  - {name: emotion, description: how the user felt}
limits: {sub_topics: 4, sub_topics_after: 2}
"""


def loaded(folder: Path, text: str, name: str = "terms.yaml") -> Terms:
    """The terms of a file of this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return Terms.load(folder / name)


def test_the_usual_terms_are_eight_topics_in_both_languages() -> None:
    """Names, labels and no tags."""
    terms = Terms.usual()
    assert [topic.term.name for topic in terms.topics] == [
        "basic_info", "contact_info", "education", "demographics", "work", "interest", "psychological", "life_event",
    ]  # fmt: skip
    for topic in terms.topics:
        assert all(term.called("zh") != term.name for term in (topic.term, *topic.sub_topics))
    assert (terms.tags, terms.strict, terms.limits, terms.language) == ((), False, Limits(15, 8, 128, 64), "auto")


def test_a_file_says_what_is_kept(tmp_path: Path) -> None:
    """Its topics stand in the place of the usual ones; what it leaves out is as usual."""
    terms = loaded(tmp_path, GOOD)
    assert [topic.term.name for topic in terms.topics] == ["garden_work", "weather", "pets"]
    assert (terms.language, terms.strict, terms.limits) == ("zh", True, Limits(4, 2, 128, 64))
    assert terms.place("园艺", "TREES") == ("garden_work", "trees")
    assert (terms.place("garden work", "roses"), terms.place("cars", "brand")) == (None, None)
    assert terms.place("weather", "rain") == ("weather", "rain")  # it names no sub-topics: all may be
    assert (terms.tag("Emotion"), terms.tag("mood")) == ("emotion", None)
    assert terms.topics[0].sub_topics[1].line("en") == "beds: vegetables"
    assert terms.called("garden_work", "trees", "zh") == ("园艺", "trees")


def test_topics_can_be_added_to_the_usual_ones(tmp_path: Path) -> None:
    """`more_topics` alone leaves them; so does an empty file."""
    assert len(loaded(tmp_path, "more_topics: [pets]").topics) == 9
    assert loaded(tmp_path, "") == loaded(tmp_path, "{}", "terms.json") == Terms.usual()


def test_json_says_the_same_without_a_yaml_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a YAML file needs the extra, and says which."""
    told = {"topics": ["pets"], "tags": ["emotion"]}
    wanted = loaded(tmp_path, json.dumps(told))
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "headrace.apps.papers.yaml_file", raising=False)
    assert loaded(tmp_path, json.dumps(told), "terms.json") == wanted
    with pytest.raises(ConfigError, match=r"terms\.yaml is YAML, which needs PyYAML: pip install 'headrace\[memory\]'"):
        Terms.load(tmp_path / "terms.yaml")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("- a", "the file must be a mapping of keys to values, got ['a']"),
        ("topic: []", "topic is not a known key (language, strict, topics, more_topics, tags, limits), got []"),
        ("topics: pets", "topics must be a list, got 'pets'"),
        ("topics: []", "topics must name at least one topic, got []"),
        ("topics: [7]", "topics[0] must be a mapping of keys to values, got 7"),
        ("topics: [{label: {zh: 宠物}}]", "topics[0] must have a name, got {'label': {'zh': '宠物'}}"),
        ("topics: [{name: 7}]", "topics[0].name must be a text of 1 to 64 letters and digits, words apart by _, got 7"),
        ("topics: ['***']", "topics[0].name must be a text of 1 to 64 letters and digits, words apart by _, got '***'"),
        ("topics: [{name: a, label: {fr: b}}]", "topics[0].label.fr is not a known key (en, zh), got 'b'"),
        ("topics: [{name: a, description: {en: ''}}]", "topics[0].description.en must be a text of 1 to 500"),
        ("topics: [{name: a, sub_topics: [x, X]}]", "topics[0].sub_topics must have names that differ, got 'x'"),
        ("more_topics: [work]", "topics must have names that differ, got 'work'"),
        ("more_topics: [工作]", "topics must have names that differ, got '工作'"),
        ("tags: [a, A]", "tags must have names that differ, got 'a'"),
        ("tags: [{name: a, values: [b]}]", "tags[0].values is not a known key (name, label, description), got ['b']"),
        ("strict: 'yes'", "strict must be true or false, got 'yes'"),
        ("language: fr", "language must be auto, en or zh, got 'fr'"),
        ("limits: {sub_topics: 0}", "limits.sub_topics must be a whole number from 1 to 500, got 0"),
        ("limits: {sub_topics: true}", "limits.sub_topics must be a whole number from 1 to 500, got True"),
        ("limits: {sub_topics: 4}", "limits.sub_topics_after must be at most sub_topics, got 8"),
        ("limits: {memo_tokens: 32}", "limits.memo_tokens_after must be at most memo_tokens, got 64"),
        ("limits: {memos: 3}", "limits.memos is not a known key (sub_topics, sub_topics_after, memo_tokens,"),
        ("a: &x [1]\nb: *x", "line 2: aliases (*name) are not supported"),
        ("tags: [a]\ntags: [b]", "line 2: the key 'tags' occurs twice"),
        ("topics: [", "is not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    """File, key, rule and value."""
    with pytest.raises(ConfigError) as told:
        loaded(tmp_path, text)
    assert str(told.value).startswith(str(tmp_path / "terms.yaml"))
    assert wrong in str(told.value)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("{", "is not valid JSON"), ('{"tags": [], "tags": []}', "must have each key once, got ['tags']"),
     ("[" * 10_000, "is not valid JSON"), ('{"x": "' + "a" * 300_000 + '"}', "must be at most 256 KiB")],
    ids=["cut", "twice", "deep", "large"],
)  # fmt: skip
def test_what_is_wrong_with_json_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    """As with YAML."""
    with pytest.raises(ConfigError) as told:
        loaded(tmp_path, text, "terms.json")
    assert str(told.value).startswith(str(tmp_path / "terms.json"))
    assert wrong in str(told.value)


@pytest.mark.parametrize("name", ["none.yaml", "none.json"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    """With what to do."""
    with pytest.raises(ConfigError, match=r"cannot be read: No such file or directory\. Name an existing file\."):
        Terms.load(tmp_path / name)
