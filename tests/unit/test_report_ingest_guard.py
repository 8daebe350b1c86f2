"""Files of test cases that could do harm: refused in a moment, in little memory, with words that help."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import xlsxwriter

from headrace import ConfigError
from headrace.apps.report.errors import FileTypeError, UnreadableFileError, UnsafeFileError
from headrace.apps.report.ingest import libraries, limits, workbooks
from headrace.apps.report.ingest.reading import read_file
from tests.unit.report_files import ROWS, SHEET, changed, ods, with_entry, xls, xlsx
from tests.unit.report_hostile import HARD, UNREADABLE, UNSAFE, linked, lying_dimension, many_entries, written

#: The promise says two seconds; the slowest takes 0.4, and a slow machine may take longer over it.
#: Of time that of processors is measured: the machine may do other things beside.
MOST_SECONDS, MOST_MEMORY = 4.0, 200 << 10
MEASURED = """
import json, resource, sys, time
from pathlib import Path
from headrace import HeadraceError
from headrace.apps.report.ingest.reading import read_file
def used():
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

took = {}
for path in map(Path, sys.argv[1:]):
    began = used()
    try:
        read_file(path)
    except HeadraceError:
        pass
    took[path.parent.name] = used() - began
# What rusage says of this process may be of the one that started it.
own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps([took, [int(own.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]]))
"""


@pytest.mark.parametrize("name", UNSAFE)
def test_what_could_do_harm_is_refused(name: str, tmp_path: Path) -> None:
    """The error has the code unsafe_archive and names the file, the rule and what was found."""
    file, write, words = UNSAFE[name]
    with pytest.raises(UnsafeFileError, match=words) as caught:
        read_file(write(tmp_path / file))
    assert caught.value.code == "unsafe_archive"
    assert str(caught.value).startswith(f"{file}: ") and ", got " in str(caught.value)


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_damaged_or_too_large_is_refused(name: str, tmp_path: Path) -> None:
    """A file that cannot be read is an error of that file; nothing else comes out of reading it."""
    file, write, words = UNREADABLE[name]
    with pytest.raises(UnreadableFileError, match=words) as caught:
        read_file(write(tmp_path / file))
    assert str(caught.value).startswith(f"{file}: ") and ", got " in str(caught.value)


def test_refusing_costs_little_time_and_memory(tmp_path: Path) -> None:
    """Every hostile file is done with soon, and this process and the one that reads hold 200 MB at most."""
    paths = []
    for name, (file, write, *_) in {**UNSAFE, **UNREADABLE, **HARD}.items():
        (tmp_path / name).mkdir()
        paths.append(str(write(tmp_path / name / file)))
    ran = subprocess.run([sys.executable, "-c", MEASURED, *paths], capture_output=True, check=True, text=True)
    took, memory = json.loads(ran.stdout)
    assert len(took) == len(paths)
    assert {name: seconds for name, seconds in took.items() if seconds > MOST_SECONDS} == {}
    assert sum(memory) < MOST_MEMORY, memory


@pytest.mark.parametrize("name", HARD)
def test_what_is_odd_but_readable_is_read(name: str, tmp_path: Path) -> None:
    """Ranges on top of each other, endless spaces and long attributes are no reason to refuse a file."""
    file, write = HARD[name]
    assert read_file(write(tmp_path / file)).cases


def test_a_dimension_that_lies_is_no_matter(tmp_path: Path) -> None:
    """A sheet is as large as its cells say."""
    found = read_file(lying_dimension(tmp_path / "a.xlsx"))
    assert [case.case_id for case in found.cases] == ["TC-1", "TC-2"]


def test_hyperlinks_are_harmless(tmp_path: Path) -> None:
    """They are opened by people or not at all."""
    path = linked(tmp_path / "a.xlsx", "xl/worksheets/_rels/sheet1.xml.rels", "hyperlink", "https://example.com/")
    assert len(read_file(path).cases) == 2


def test_a_workbook_for_macros_without_any_is_read(tmp_path: Path) -> None:
    """The ending alone does no harm."""
    assert len(read_file(xlsx(tmp_path / "a.xlsm")).cases) == 2


def test_as_many_entries_as_are_allowed(tmp_path: Path) -> None:
    """A thousand are none too many."""
    assert len(read_file(many_entries(tmp_path / "a.xlsx", 1_000)).cases) == 2


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("MAX_UNPACKED", 2_000, "unpacked it must have at most"), ("MAX_ENTRIES", 3, "at most 3 entries")],
)
def test_limits_of_archives(
    limit: str, value: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries and the size once unpacked are bounded."""
    monkeypatch.setattr(limits, limit, value)
    with pytest.raises(UnsafeFileError, match=words):
        read_file(xlsx(tmp_path / "a.xlsx"))


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    """Beyond 50 MiB nothing of it is looked at."""
    path = xlsx(tmp_path / "a.xlsx")
    with path.open("r+b") as file:
        file.truncate(limits.MAX_BYTES + 1)
    with pytest.raises(UnsafeFileError, match=r"at most 50 MiB, got 50\.0 MiB"):
        read_file(path)


def test_sizes_that_lie_are_found_out(tmp_path: Path) -> None:
    """An entry that unpacks to more than the list says is damaged: no more than it says is unpacked."""
    path = with_entry(xlsx(tmp_path / "a.xlsx"), "xl/a.xml", b" " * (20 << 20))
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = (1_000).to_bytes(4, "little")
    with pytest.raises(UnreadableFileError, match="must be whole"):
        read_file(written(bytes(data))(path))


def test_a_reader_that_dies_or_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads may end in any way: what comes of it is an error of the file."""
    child = tmp_path / "child.py"
    child.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(workbooks, "_CHILD", str(child))
    path = xlsx(tmp_path / "a.xlsx")
    with pytest.raises(UnreadableFileError, match="much more memory or time"):
        read_file(path)
    child.write_text("import signal\nsignal.pause()\n")
    monkeypatch.setattr(limits, "TIMEOUT", 0.3)
    with pytest.raises(UnreadableFileError, match="much more memory or time"):
        read_file(path)


def test_a_reader_that_is_slow_but_goes_on_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long all rows take together on a busy machine does not count against the file."""
    child = tmp_path / "child.py"
    rows = [["ID", "Title", "Result"], *[[str(number), "a", "ok"] for number in range(6)]]
    head = [{"sheets": {"Cases": False}}, {"sheet": "Cases", "merges": [], "broken": []}]
    child.write_text(
        "import json, time\n"
        f"for line in {[*head, *rows, {'end': True}]!r}:\n"
        "    print(json.dumps(line), flush=True)\n    time.sleep(0.35)\n"
    )
    monkeypatch.setattr(workbooks, "_CHILD", str(child))
    monkeypatch.setattr(limits, "TIMEOUT", 2.0)
    assert len(read_file(xlsx(tmp_path / "a.xlsx")).cases) == 6


def test_bytes_that_were_changed_at_random_never_end_in_a_traceback(tmp_path: Path) -> None:
    """Damage anywhere in a file of any kind gives cases or an error of ours."""
    chance = random.Random(7)
    for make, name in ((xlsx, "a.xlsx"), (ods, "a.ods"), (xls, "a.xls")):
        whole = make(tmp_path / name).read_bytes()
        for _ in range(15):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 20)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            (tmp_path / name).write_bytes(data)
            try:
                read_file(tmp_path / name)
            except ConfigError as error:
                assert str(error).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", None, "its ending says csv, got content of the kind xlsx. Name it .xlsx"),
        ("a.xlsx", b"id,title\n1,a\n", "its ending says xlsx, got content of the kind csv"),
        ("a.xls", b"<html><table></table></html>", "its ending says xls, got content of the kind html"),
        ("a.xlsx", b"%PDF-1.7", "content of the kind pdf"),
        ("a.xlsx", b"\x89PNG\r\n\x1a\n\0\0", "content of the kind binary"),
        ("a.csv", b'<?xml version="1.0"?><testsuites/>', "content of the kind xml"),
        ("a.docx", b"id,title\n", "its ending must tell a kind that is read, got .docx"),
        ("cases", b"id,title\n", "its ending must tell a kind that is read, got none"),
    ],
)
def test_content_and_name_must_agree(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    """What a file is shows in its content; a name that says otherwise is refused by an error of its own code."""
    path = xlsx(tmp_path / "made.xlsx").rename(tmp_path / name) if content is None else tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileTypeError, match=words) as caught:
        read_file(path)
    assert caught.value.code == "wrong_file_type"
    assert isinstance(caught.value, UnreadableFileError)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It is named, as is a folder in its place."""
    for path in (tmp_path / "none.xlsx", tmp_path):
        with pytest.raises(UnreadableFileError, match="can be opened"):
            read_file(path)


def test_libraries_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr(libraries, "find_spec", lambda _: None)
    for path in (xlsx(tmp_path / "a.xlsx"), xls(tmp_path / "a.xls")):
        with pytest.raises(ConfigError, match=r"pip install 'headrace\[report\]'"):
            read_file(path)


def test_cells_are_bounded_for_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sheets and texts share one budget of cells."""
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        for sheet in (book.add_worksheet("One"), book.add_worksheet("Two")):
            for number, row in enumerate(ROWS):
                sheet.write_row(number, 0, row)
    monkeypatch.setattr(limits, "MAX_CELLS", 20)
    with pytest.raises(UnreadableFileError, match=r"20 cells .* in all, got 3 rows and 4 columns up to sheet 'Two'"):
        read_file(path)
    assert len(read_file(path, sheets=["One"]).cases) == 2
    monkeypatch.setattr(limits, "MAX_CELLS", 8)
    with pytest.raises(UnreadableFileError, match=r"at most 8 cells, got more in 'xl/worksheets/sheet1\.xml'"):
        read_file(path)
    (tmp_path / "a.csv").write_text("a,b,c\n" * 3)
    with pytest.raises(UnreadableFileError, match="8 cells, got more in row 3"):
        read_file(tmp_path / "a.csv")


def test_parts_without_a_known_shape_are_let_alone(tmp_path: Path) -> None:
    """A workbook whose relationships are not where others have them is read without looking for broken cells."""
    path = changed(xlsx(tmp_path / "a.xlsx"), SHEET, lambda part: part.replace(b"<c r=", b"<c  r="))
    assert len(read_file(path).cases) == 2


def test_the_bound_of_a_cell_is_not_that_of_the_process(tmp_path: Path) -> None:
    """Others may let the csv module take longer ones."""
    before = csv.field_size_limit(10_000_000)
    try:
        (tmp_path / "a.csv").write_bytes(b"Case ID,Title,Result\n1," + b"c" * 200_000 + b",Pass\n")
        with pytest.raises(UnreadableFileError, match="at most 131,072 characters"):
            read_file(tmp_path / "a.csv")
    finally:
        csv.field_size_limit(before)
