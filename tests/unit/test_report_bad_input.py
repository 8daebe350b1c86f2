"""`headrace report` with what cannot be used: exit code 2, words that help, no traceback, and no run that pretends."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli_runner import CommandLine
from tests.unit.report_commands import reports_on_memory
from tests.unit.report_files import xlsx

Made = tuple[Path, list[object]]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Commands on a store of this test's own."""
    with reports_on_memory(monkeypatch) as made:
        yield made


def _file(name: str, content: bytes) -> Callable[[Path], Any]:
    def make(folder: Path) -> Made:
        (folder / name).write_bytes(content)
        return folder / name, []

    return make


def _bomb(folder: Path) -> Made:
    path = xlsx(folder / "cases.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/big.xml", b"0" * 50_000_000)
    return path, []


def _no_cases(folder: Path) -> Made:
    return xlsx(folder / "cases.xlsx", [["Colour", "Weight"], ["red", 3]]), []


def _options(*options: object) -> Callable[[Path], Any]:
    return lambda folder: (xlsx(folder / "cases.xlsx"), list(options))


def _option_file(option: str, name: str, content: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> Made:
        (folder / name).write_text(content, encoding="utf-8")
        return xlsx(folder / "cases.xlsx"), [option, folder / name]

    return make


#: What is told, and how many runs there are afterwards: what only reading can tell leaves one, which failed.
BAD: dict[str, tuple[Callable[[Path], Any], str, str, int]] = {
    "missing file": (lambda folder: (folder / "no.xlsx", []), "unreadable_file", "No such file", 0),
    "folder": (lambda folder: (folder, []), "unreadable_file", "Is a directory", 0),
    "no workbook": (_file("cases.xlsx", b"not a workbook"), "wrong_file_type", "its ending says xlsx", 1),
    "other kind": (_file("cases.doc", b"text"), "wrong_file_type", "got .doc", 1),
    "zip bomb": (_bomb, "unsafe_archive", "packed to no less than 1/100", 1),
    "no cases": (_no_cases, "no_cases", "cases.xlsx", 1),
    "unknown sheet": (_options("--sheet", "Nope"), "no_cases", "there is no sheet 'Nope'", 1),
    "missing rules": (_options("--rules", "no.yaml"), "invalid_rules", "no.yaml cannot be read", 0),
    "bad rules": (_option_file("--rules", "rules.yaml", "modules: 3"), "invalid_rules", "rules.yaml: modules", 0),
    "missing previous": (_options("--previous", "no.json"), "invalid_previous", "no.json: cannot be read", 0),
    "bad previous": (_option_file("--previous", "old.json", "{}"), "invalid_previous", "old.json: schema must be", 0),
    "bad gate": (_options("--gate", "pass_rate_of_executed=x"), "invalid_input", "pass_rate_of_executed is wrong", 0),
    "gate of 101": (_options("--gate", "execution_rate=101"), "invalid_input", "got '101'", 0),
    "unknown gate": (_options("--gate", "luck=1"), "invalid_input", "must be NAME=VALUE", 0),
    "no such bucket": (lambda folder: ("s3://nowhere/cases.xlsx", []), "unreadable_file", "[blob_storage]", 0),
    "bad key": (lambda folder: ("s3://bucket/..", []), "invalid_input", "the name of a file", 0),
    "bad name": (lambda folder: ("file:../cases.xlsx", []), "invalid_input", "without /", 0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_and_leaves_no_run_that_goes_on(name: str, line: CommandLine, tmp_path: Path) -> None:
    """For people and as JSON; the same command says the same again."""
    make, code, words, runs = BAD[name]
    path, options = make(tmp_path)
    command = ("report", "build", path, "--out", tmp_path / "out", *options)
    exit_code, error = line.refusal(*command)
    assert (exit_code, error["code"]) == (2, code), error
    assert words in error["message"]
    told = line(*command)
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"Error: {error['message']}" in told.stderr
    assert "Traceback" not in told.stderr
    assert list((tmp_path / "out").iterdir()) == []
    found = line.json("run", "list")
    assert [run["state"] for run in found] == ["failed"] * (2 * runs), found


@pytest.mark.parametrize("where", ["file", "file/below", "\0"])
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_done(
    where: str, line: CommandLine, tmp_path: Path
) -> None:
    """Nothing is read, and nothing is stored."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    out = "/proc/nowhere" if where == "\0" else tmp_path / where
    exit_code, error = line.refusal("report", "build", xlsx(tmp_path / "cases.xlsx"), "--out", out)
    assert (exit_code, error["code"]) == (2, "invalid_input")
    assert "--out must be a folder that can be written" in error["message"]
    assert line.json("run", "list") == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("resume", "0" * 32, "--out", "out"), 5, "not_found"),
        (("resume", "../etc", "--out", "out"), 5, "not_found"),
        (("status", "no-such-report"), 5, "not_found"),
    ],
)
def test_a_report_that_nobody_began_is_not_found(
    arguments: tuple[str, ...], exit_code: int, code: str, line: CommandLine, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Exit code 5, as of all commands."""
    monkeypatch.chdir(tmp_path)
    assert line.refusal("report", *arguments)[0] == exit_code
    assert line.refusal("report", *arguments)[1]["code"] == code
