"""Copies of the package with single edits, for children that run in place of the package itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "headrace"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a file of the package; `old` must be in it exactly once."""

    path: str
    old: str
    new: str


def mutated_package(folder: Path, edits: Sequence[Edit] = ()) -> Path:
    """Copy the package into `folder`, make `edits`, and return the directory to put first on a child's import path.

    Raises AssertionError when the text to replace is not there exactly once, or is replaced by itself: the code has
    moved on, and the edit has to follow it.
    """
    root = folder / "mutated"
    shutil.copytree(PACKAGE, root / PACKAGE.name)
    for edit in edits:
        _apply(root / PACKAGE.name / edit.path, edit)
    return root


def _apply(file: Path, edit: Edit) -> None:
    text = file.read_text("utf-8")
    found = text.count(edit.old)
    assert found == 1, f"{edit.path} holds the text to replace {found} times, not once: {edit.old!r}"
    assert edit.new != edit.old, f"the edit of {edit.path} changes nothing: {edit.old!r}"
    file.write_text(text.replace(edit.old, edit.new), "utf-8")


def import_path(root: Path) -> str:
    """Return a PYTHONPATH under which a child imports the copy at `root` rather than the package."""
    return os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
