"""The documents point only to what exists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import check_docs, check_words, make_figures

ROOT = check_docs.ROOT


@pytest.mark.parametrize("document", check_docs.documents(ROOT), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_named_tests_exist(document: Path) -> None:
    """Every relative link resolves, and every test named as the proof of a promise exists."""
    assert check_docs.problems(document, ROOT) == []


def test_a_broken_link_a_lost_heading_and_an_invented_test_are_found(tmp_path: Path) -> None:
    """The check itself notices each kind of lie."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_real.py").write_text(
        "def test_one(): ...\nclass TestTwo:\n    def test_three(self): ...\n"
    )
    document = tmp_path / "page.md"
    document.write_text(
        "# A heading, here\n[good](#a-heading-here) [lost](#elsewhere) [gone](missing.md) [web](https://example.org)\n"
        "`tests/test_real.py::test_one` `tests/test_real.py::TestTwo::test_three`\n"
        "`tests/test_real.py::test_two` `tests/test_none.py::test_one`\n"
    )

    found = check_docs.problems(document, tmp_path)

    assert found == [
        "page.md: the link #elsewhere leads nowhere",
        "page.md: the link missing.md leads nowhere",
        "page.md: there is no test tests/test_real.py::test_two",
        "page.md: there is no test tests/test_none.py::test_one",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "see /ho" + "me/ann/src",
        "--index" + "-url https://mirror.example/simple",
        "https://py" + "pi.org/simple",
        "at /srv/x",
    ],
)
def test_what_ties_the_repository_to_one_machine_is_found(line: str) -> None:
    """Home directories, package indexes and the path of the checkout are refused in every tracked file."""
    assert check_words.findings(Path("page.md"), line, "/srv/x")


@pytest.mark.parametrize("line", ["~/src and /var/lib/headrace", "postgresql://localhost/app", "mode 700 of $HOME"])
def test_ordinary_prose_passes(line: str) -> None:
    """Paths every machine has and addresses of examples are no breach."""
    assert check_words.findings(Path("page.md"), line, "/srv/x") == []


@pytest.mark.parametrize(("page", "least"), [("docs/guarantees.md", 8), ("docs/explanation/scatter.md", 10)])
def test_every_promise_and_every_anti_pattern_names_its_tests(page: str, least: int) -> None:
    """No section of these pages claims something without a test, but those that claim nothing."""
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = [part for part in text.split("\n## ")[1:] if not part.startswith(("Not ", "Where this differs"))]
    assert len(sections) >= least
    assert [section.splitlines()[0] for section in sections if not check_docs.TEST.search(section)] == []


def test_the_readme_shows_the_figures_that_were_published() -> None:
    """Its table is the one that the last published run gives: `make reference` writes it."""
    text = make_figures.README.read_text("utf-8")
    report = json.loads(make_figures.RESULTS.read_text("utf-8"))
    assert make_figures.with_figures(text, report) == text
    assert "may not be quoted" in make_figures.with_figures(text, {**report, "valid": False})
    with pytest.raises(ValueError, match="lost the marks"):
        make_figures.with_figures(text.replace(make_figures.END, ""), report)
