"""The scan of a folder: stable, complete, and inside the folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.apps.papers.documents import Reason, scan_folder
from headrace.apps.papers.errors import FolderError, NoDocumentsError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of documents with a neighbour outside."""
    (tmp_path / "outside.txt").write_text("Secret.")
    root = tmp_path / "papers"
    (root / "b").mkdir(parents=True)
    (root / "z.txt").write_text("The same.")
    (root / "b" / "a.md").write_text("The same.")
    (root / "b" / "c.TXT").write_text("Another.")
    return root


def test_documents_are_sorted_and_duplicates_grouped(folder: Path) -> None:
    """Shallow names come first, and of equal contents the first keeps the document."""
    selection = scan_folder(folder)
    assert [(document.name, document.duplicates) for document in selection.documents] == [
        ("z.txt", ("b/a.md",)),
        ("b/c.TXT", ()),
    ]
    assert selection.duplicate_count == 1
    assert scan_folder(folder) == selection


def test_hidden_files_are_skipped(folder: Path) -> None:
    """Hidden files and folders and lock files of Office are no documents and no problems."""
    (folder / ".hidden.txt").write_text("x")
    (folder / "~$lock.txt").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "a.txt").write_text("x")
    selection = scan_folder(folder)
    assert len(selection.documents) == 2
    assert selection.problems == ()


def test_links_out_of_the_folder_are_not_followed(folder: Path) -> None:
    """A link to a file or folder outside is a problem; one inside is just another name."""
    (folder / "escape.txt").symlink_to(folder.parent / "outside.txt")
    (folder / "up").symlink_to(folder.parent)
    (folder / "inside.txt").symlink_to(folder / "z.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    selection = scan_folder(folder)
    assert [document.name for document in selection.documents] == ["inside.txt", "b/c.TXT"]
    assert selection.documents[0].duplicates == ("z.txt", "b/a.md")
    assert [(problem.name, problem.reason) for problem in selection.problems] == [
        ("escape.txt", Reason.OUTSIDE_FOLDER),
        ("gone.txt", Reason.NOT_READABLE),
        ("up", Reason.OUTSIDE_FOLDER),
    ]


def test_files_without_a_reader_are_told(folder: Path) -> None:
    """A file that no reader takes is a problem with its name."""
    (folder / "thesis.docx").write_bytes(b"PK\x03\x04")
    (folder / "pipe.txt").unlink(missing_ok=True)
    os.mkfifo(folder / "pipe.txt")
    problems = {problem.name: problem.reason for problem in scan_folder(folder).problems}
    assert problems == {"thesis.docx": Reason.UNSUPPORTED_TYPE, "pipe.txt": Reason.NOT_READABLE}


def test_a_name_that_is_not_utf8_can_be_stored(folder: Path) -> None:
    """A file name with bytes that are no characters is shown with replacement signs, and its path still opens."""
    os.link(folder / "b" / "c.TXT", os.fsencode(folder) + b"/bad-\xff.txt")
    selection = scan_folder(folder)
    found = next(document for document in selection.documents if document.name.startswith("bad-"))
    assert found.name == "bad-\N{REPLACEMENT CHARACTER}.txt"
    assert found.path.read_text() == "Another."


def test_an_empty_selection_has_its_own_words(tmp_path: Path) -> None:
    """A folder without documents is refused in the documented words."""
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(NoDocumentsError) as caught:
        scan_folder(tmp_path)
    assert str(caught.value) == "No documents selected"


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder and a file are refused by name."""
    file = tmp_path / "a.txt"
    file.write_text("x")
    for path in (file, tmp_path / "missing"):
        with pytest.raises(FolderError, match="is not a folder"):
            scan_folder(path)
