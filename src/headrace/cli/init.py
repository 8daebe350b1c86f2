"""`headrace init`: write a small project that works as it is. Its files lie in `starter/`, as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TypedDict

import click

from headrace.cli.output import json_option, print_json, print_text
from headrace.model.errors import ConfigError

#: What is written, by the names of the files in `starter/`; those have a suffix, since they are no modules of ours.
_NAMES = {
    "README.md": "README.md",
    "headrace.toml": "headrace.toml",
    "jobs.py": "jobs.py",
    "test_jobs.py": "test_jobs.py",
    "gitignore": ".gitignore",
}
#: What may lie in a directory that counts as empty: traces of tools that were there before.
_NOTHING = {".git", ".venv", "venv", ".DS_Store"}


class Written(TypedDict):
    """What was done, as --json says it."""

    directory: str
    written: list[str]
    kept: list[str]


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--force", is_flag=True, show_default=False,
    help="Also where other files are: add those that are missing. None is ever overwritten.",
)  # fmt: skip
@json_option
def init(directory: Path, force: bool, as_json: bool) -> None:
    """Write a small project that works as it is: two tasks, their tests, and a headrace.toml with comments.

    DIR is made where there is none; without it the project is written here. Its README has five steps, from the first
    result, which needs no model and no key, to a task of your own.

    \b
    Examples:
      headrace init
      headrace init shop --json
      headrace init . --force
    """
    _check_place(directory, force=force)
    done = write_project(directory)
    if as_json:
        print_json(done)
        return
    for name in done["kept"]:
        print_text(f"kept     {name}")
    for name in done["written"]:
        print_text(f"written  {name}")
    print_text("\nNow:")
    for step in _steps(directory):
        print_text(f"  {step}")


def write_project(directory: Path) -> Written:
    """Write the files that are missing and return their names, and those of the files that were there.

    Raises ConfigError where the directory cannot be written.
    """
    done = Written(directory=str(directory.absolute()), written=[], kept=[])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for source, name in _NAMES.items():
            made = _write_new(directory / name, _text_of(source))
            done["written" if made else "kept"].append(name)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be written: {error.strerror or error}; give another DIR") from None
    return done


def _text_of(name: str) -> str:
    return (files("headrace.cli") / "starter" / f"{name}.template").read_text(encoding="utf-8")


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there, and return whether it was written. A link that leads nowhere is there, too."""
    try:
        # Exclusively: what somebody writes meanwhile is not overwritten either.
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _check_place(directory: Path, *, force: bool) -> None:
    """Raise ConfigError for what is no directory, or is one that has files."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigError(f"{directory} is a file; give a DIR that is empty or does not exist yet")
    try:
        found = sorted({path.name for path in directory.iterdir()} - _NOTHING)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be read: {error.strerror or error}; give another DIR") from None
    if found and not force:
        shown = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise ConfigError(
            f"{directory.absolute()} is not empty ({shown}); give a DIR that is, or add --force, which writes the "
            "files that are missing and overwrites none"
        )


def _steps(directory: Path) -> Iterator[str]:
    """Yield the commands to go on with, all of which work."""
    if directory.resolve() != Path.cwd().resolve():
        yield f"cd {quote(str(directory))}"
    yield "python jobs.py"
    if find_spec("pytest") is None:
        yield "python -m pip install pytest"
    yield "python -m pytest"
    yield "headrace dev jobs:app"
