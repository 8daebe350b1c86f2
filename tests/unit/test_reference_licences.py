"""The page of licences: whose licences count, how they are read, and that nothing is guessed."""

from __future__ import annotations

import tomllib
from importlib import metadata
from typing import Any

import pytest

from tools.reference import licences


def says(monkeypatch: pytest.MonkeyPatch, **lines: Any) -> None:
    """Let every package say this of itself."""
    said = metadata.metadata("click")
    for name in ("License-Expression", "License", "Classifier"):
        del said[name]  # type: ignore[attr-defined]
    for name, value in lines.items():
        for one in value if isinstance(value, list) else [value]:
            said[name.replace("_", "-")] = one  # type: ignore[index]
    monkeypatch.setattr(licences.metadata, "metadata", lambda _: said)


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        ({"License_Expression": "MIT OR Apache-2.0", "License": "something"}, "MIT OR Apache-2.0"),
        ({"License": "New BSD"}, "BSD-3-Clause"),
        ({"Classifier": ["License :: OSI Approved :: MIT License"]}, "MIT"),
    ],
)
def test_a_licence_is_read_where_a_package_has_it(
    lines: dict[str, Any], licence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expression before free words, and those before classifiers; known words are turned into expressions."""
    says(monkeypatch, **lines)
    assert licences.licence_of("some-package") == licence


@pytest.mark.parametrize("lines", [{}, {"License": "see the file"}, {"License": "Other/Proprietary License"}])
def test_words_that_nobody_has_read_stop_the_page(lines: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that says nothing, or something new, is looked at by somebody before it is listed."""
    says(monkeypatch, **lines)
    with pytest.raises(ValueError, match=r"some-package says .* read it, and add it"):
        licences.licence_of("some-package")


def test_copyleft_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package under such a licence is named in the section of its own, whatever else it offers."""
    before = licences.licences()
    monkeypatch.setattr(licences, "licence_of", lambda name: "LGPL-3.0-only" if name == "click" else "MIT")
    _, _, copyleft = licences.licences().partition("## Copyleft")
    assert "| `click` | LGPL-3.0-only |" in copyleft
    assert "| `click` |" not in before.partition("## Copyleft")[2]


def test_everything_that_is_asked_for_is_on_the_page() -> None:
    """Each dependency of pyproject.toml has its row; an extra that is left out is named."""
    project = tomllib.loads((licences.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = licences.licences()
    direct = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    names = {licences.canonicalize_name(licences.Requirement(line).name) for line in direct}
    assert {name for name in names if f"`{name}`" not in page} == set()
    assert licences.closure(["redis>=6"]) == {"redis"}
    assert "pytest" in licences.closure(["headrace[testing]"]) - licences.closure(["headrace"])
    assert licences.closure(["pydantic; sys_platform == 'win32'"]) == set()
