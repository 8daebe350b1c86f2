"""A YAML file read with care: plain data only, no anchors, no repeated keys, and every path knows its line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headrace.apps.papers.errors import TemplateError

MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The data of a YAML text, and its nodes for finding lines."""

    name: str
    data: Any
    root: yaml.Node | None

    @classmethod
    def parse(cls, text: str, name: str) -> YamlFile:
        """Parse a text; `name` is what errors call it. Raises `TemplateError`.

        >>> YamlFile.parse("a: [1, {b: 2}]", "t.yaml").line_of(("a", 1, "b"))
        1
        """
        try:
            _refuse_aliases(text, name)
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            _refuse_repeated_keys(root, name)
            _refuse_half_characters(root)
            return cls(name, yaml.safe_load(text), root)
        except yaml.YAMLError as error:
            raise TemplateError(f"{name} is not valid YAML: {_short(error)}. Correct that line.") from None
        except RecursionError:
            raise TemplateError(f"{name} is nested too deeply; a template needs three levels.") from None
        except ValueError as error:  # such as the date 2021-02-30
            raise TemplateError(
                f"{name} holds an impossible value: {error}. Correct it, or put it in quotes."
            ) from None

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """The line (from 1) of what `path` leads to; of its nearest parent where it is missing."""
        node = self.root
        for step in path:
            inner = _child(node, step)
            if inner is None:
                break
            node = inner
        return None if node is None else node.start_mark.line + 1


def read_yaml(path: Path) -> YamlFile:
    """Read and parse a file of at most 256 KiB in UTF-8. Raises `TemplateError`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TemplateError(f"{path} cannot be read: {error.strerror or error}. Name an existing file.") from None
    if len(content) > MAX_BYTES:
        raise TemplateError(f"{path} is larger than {MAX_BYTES // 1024} KiB; that is no template.")
    try:
        return YamlFile.parse(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        items: list[yaml.Node] = node.value
        return items[step] if step < len(items) else None
    if isinstance(node, yaml.MappingNode):
        pairs: list[tuple[yaml.Node, yaml.Node]] = node.value
        for key, value in pairs:
            if key.value == step:
                return key if isinstance(value, yaml.ScalarNode) else value
    return None


def _nodes(node: yaml.Node | None) -> Iterator[yaml.Node]:
    todo = [node] if node is not None else []
    while todo:
        current = todo.pop()
        yield current
        if isinstance(current, yaml.MappingNode):
            todo.extend(part for pair in current.value for part in pair)
        elif isinstance(current, yaml.SequenceNode):
            todo.extend(current.value)


def _refuse_repeated_keys(root: yaml.Node | None, name: str) -> None:
    for node in _nodes(root):
        if not isinstance(node, yaml.MappingNode):
            continue
        seen: set[str] = set()
        for key, _ in node.value:
            text = str(key.value)
            if text in seen:
                line = key.start_mark.line + 1
                raise TemplateError(f"{name}, line {line}: the key {text!r} occurs twice. Remove one.")
            seen.add(text)


def _refuse_half_characters(root: yaml.Node | None) -> None:
    # "\\ud800" and "\\0" are legal escapes, but no text: they would fail wherever it is stored or sent.
    for node in _nodes(root):
        if isinstance(node, yaml.ScalarNode):
            node.value.encode("utf-8")
            if any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in node.value):
                raise ValueError(f"a control character in {node.value!r:.60}")


def _refuse_aliases(text: str, name: str) -> None:
    # An alias lets a few lines stand for gigabytes of data.
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            line = token.start_mark.line + 1
            raise TemplateError(f"{name}, line {line}: aliases (*name) are not supported. Write the value out.")


def _short(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} in line {error.problem_mark.line + 1}"
    return " ".join(str(error).split())[:200]
