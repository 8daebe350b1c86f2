"""`headrace init`: what it writes, where it refuses, and that it overwrites nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.unit.cli_runner import CommandLine, command_line

FILES = {".gitignore", "README.md", "headrace.toml", "jobs.py", "test_jobs.py"}


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line in an empty directory."""
    with command_line(monkeypatch) as line:
        monkeypatch.chdir(tmp_path)
        yield line


def names(folder: Path) -> set[str]:
    """Return the names in a directory."""
    return {path.name for path in folder.iterdir()}


def test_a_project_is_written_into_a_directory_that_is_made_for_it(headrace: CommandLine, tmp_path: Path) -> None:
    """Every file of the starter is written, as it lies in the package; --json says where."""
    done = headrace.json("init", "a/b c")
    assert done == {
        "directory": str(tmp_path / "a" / "b c"),
        "written": ["README.md", "headrace.toml", "jobs.py", "test_jobs.py", ".gitignore"],
        "kept": [],
    }
    assert names(tmp_path / "a" / "b c") == FILES
    starter = files("headrace.cli") / "starter"
    assert {entry.name.removesuffix(".template") for entry in starter.iterdir()} == {
        name.removeprefix(".") for name in FILES
    }
    compile((tmp_path / "a" / "b c" / "jobs.py").read_text("utf-8"), "jobs.py", "exec")


def test_people_are_told_what_to_type(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory of another name they have to go there first; what is missing has to be installed first."""
    assert headrace.text("init", "my shop").endswith(
        "Now:\n  cd 'my shop'\n  python jobs.py\n  python -m pytest\n  headrace dev jobs:app\n"
    )
    assert "cd " not in headrace.text("init", "--force")
    monkeypatch.setattr("headrace.cli.init.find_spec", lambda _: None)
    assert "\n  python -m pip install pytest\n  python -m pytest\n" in headrace.text("init", "--force")


def test_a_directory_with_files_is_refused_with_the_fix(headrace: CommandLine, tmp_path: Path) -> None:
    """Nothing is written; an environment or a repository that is there already is no file of somebody's."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").write_text("mine")
    code, error = headrace.refusal("init")
    assert (code, error["code"]) == (2, "config")
    assert "is not empty (notes)" in error["message"]
    assert "--force" in error["message"]
    assert names(tmp_path) == {".venv", ".git", "notes"}
    (tmp_path / "notes").unlink()
    assert headrace.json("init")["kept"] == []


def test_force_adds_what_is_missing_and_overwrites_nothing(headrace: CommandLine, tmp_path: Path) -> None:
    """Files of the same names stay as they are, also a link to nowhere and a directory."""
    (tmp_path / "jobs.py").write_text("mine")
    (tmp_path / "README.md").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".gitignore").mkdir()
    done = headrace.json("init", ".", "--force")
    assert done["kept"] == ["README.md", "jobs.py", ".gitignore"]
    assert done["written"] == ["headrace.toml", "test_jobs.py"]
    assert (tmp_path / "jobs.py").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
    assert headrace.json("init", "--force")["written"] == []


def test_what_is_no_directory_is_refused(headrace: CommandLine, tmp_path: Path) -> None:
    """A file, or a path below one, is named in the error."""
    (tmp_path / "notes").write_text("mine")
    for place in ("notes", "notes/shop"):
        code, error = headrace.refusal("init", place)
        assert (code, error["code"]) == (2, "config")
        assert place in error["message"]


def test_the_settings_of_the_project_are_understood(headrace: CommandLine, tmp_path: Path) -> None:
    """Those that are commented out are keys that exist, with values that are taken."""
    from headrace.settings import load_settings

    headrace.text("init")
    text = (tmp_path / "headrace.toml").read_text("utf-8")
    lines = [line.removeprefix("# ") if " = " in line and line.startswith("# ") else line for line in text.splitlines()]
    (tmp_path / "all.toml").write_text("\n".join(lines))
    assert len(tomllib.loads("\n".join(lines))["llm"]) == 3
    settings = load_settings(file=tmp_path / "all.toml", environ={})
    assert settings.llm.requests_per_minute == 60
    assert settings.queues["reviews"].rate_limit is not None
