"""The sample files: read to the last figure as the generator wrote them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError
from headrace.apps.report.data.cases import Case, Ingested
from headrace.apps.report.ingest.reading import read_file
from headrace.apps.report.samples import workbook
from headrace.apps.report.samples.junit import WITHOUT
from headrace.apps.report.samples.messy import HIDDEN, SHEET
from headrace.apps.report.samples.messy_cases import HOSTILE
from headrace.apps.report.samples.subjects import FAILURES, SUBJECTS
from headrace.apps.report.samples.writing import WRITERS, write_samples
from tests.effort import bounded_work

#: Figures that the generator counted while it wrote.
GOLDENS: dict[str, Any] = json.loads(Path(__file__).with_name("report_goldens.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all samples."""
    made: Path = tmp_path_factory.mktemp("samples")
    assert [path.name for path in write_samples(made / "new")] == list(WRITERS)
    return made / "new"


@pytest.fixture(scope="module")
def messy(folder: Path) -> Ingested:
    """Return the messy sample as it was read."""
    return read_file(folder / "messy.xlsx")


def counts(values: Iterable[str]) -> dict[str, int]:
    """Count values."""
    return dict(sorted(Counter(values).items()))


def figures(found: Ingested) -> dict[str, Any]:
    """Return what a reader can count, as `Truth.figures` does of what was written."""
    report = found.validation
    return {
        "cases": len(found.cases),
        "rejected": report.rejected,
        "statuses": counts(case.status.value for case in found.cases),
        "modules": counts(case.module for case in found.cases),
        "priorities": counts(case.priority for case in found.cases),
        "severities": counts(case.severity for case in found.cases if case.fails),
        "missing": dict(sorted(report.missing.items())),
        "issues": report.issues,
    }


@pytest.mark.parametrize("name", WRITERS)
def test_samples_are_read_as_they_were_written(name: str, folder: Path, tmp_path: Path) -> None:
    """The goldens are what the generator knows; the reader comes to the same figures."""
    known = WRITERS[name](tmp_path / name).figures(without=WITHOUT if name == "junit.xml" else ())
    assert known == GOLDENS[name]
    assert figures(read_file(folder / name)) == GOLDENS[name]


def test_samples_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    """Byte for byte; another seed gives others."""
    for name, path in zip(WRITERS, write_samples(tmp_path), strict=True):
        assert path.read_bytes() == (folder / name).read_bytes()
        WRITERS[name](tmp_path / f"other-{name}", 99)
        assert path.read_bytes() != (tmp_path / f"other-{name}").read_bytes()


def test_the_clean_sample_has_nothing_wrong(folder: Path) -> None:
    """A workbook as one would wish it gives no issue and no warning."""
    found = read_file(folder / "clean.xlsx")
    assert (len(found.cases), found.issues, found.validation.is_incomplete) == (120, (), False)
    assert {case.source.sheet for case in found.cases} == {"Web", "API"}
    assert [sheet.name for sheet in found.validation.sheets if not sheet.used] == ["Release notes"]


def test_the_messy_sample_is_read(folder: Path) -> None:
    """Two thousand rows."""
    with bounded_work(4):
        found = read_file(folder / "messy.xlsx")
    main, figures_sheet, hidden = found.validation.sheets
    assert (main.name, main.rows, main.header_rows, main.used) == (SHEET, 2_000, (3, 4), True)
    assert (figures_sheet.used, hidden.used, hidden.hidden, hidden.name) == (False, False, True, HIDDEN)
    assert main.columns["status"] == "执行结果" and main.columns["duration_seconds"] == "耗时(s)"
    assert len(read_file(folder / "messy.xlsx", sheets=[HIDDEN]).cases) == 30


def test_hostile_texts_are_kept_as_texts(messy: Ingested) -> None:
    """What a report must neither run nor lose is a title as any other."""
    assert {case.title for case in messy.cases}.issuperset(HOSTILE)


def test_every_issue_tells_its_place(messy: Ingested) -> None:
    """Row and header lead to the cell; ids are given once."""
    rows = {case.source.row: case for case in messy.cases}
    assert len(rows) == len({case.case_id for case in messy.cases}) == len(messy.cases)
    for issue in messy.issues:
        assert issue.sheet == SHEET and issue.message
        assert issue.rule in ("total_row", "repeated_header") or (issue.row in rows and issue.column)


def test_most_cases_of_the_messy_sample_have_a_module_or_a_word_for_it(messy: Ingested) -> None:
    """Some have no module given; of all, four in five have one, or a prefix or word that tells it."""
    without = [case for case in messy.cases if not case.module]
    assert 0.10 <= len(without) / len(messy.cases) <= 0.15
    assert sum(map(is_told, messy.cases)) / len(messy.cases) >= 0.8


def is_told(case: Case) -> bool:
    """Return whether simple rules tell the module of a case."""
    prefixes = tuple(f"TC-{subject.prefix}-" for subject in SUBJECTS)
    return bool(case.module) or case.case_id.startswith(prefixes) or any(s.zh in case.title for s in SUBJECTS)


def test_failures_of_the_messy_sample_fall_into_families(messy: Ingested) -> None:
    """Once ids, numbers and paths are masked, hundreds of failures are a dozen."""
    masked = Counter(re.sub(r"[0-9a-f]{8}|SO\d+|\d+(\.\d+)?", "#", case.actual) for case in messy.cases if case.fails)
    masked.pop("", None)
    assert len(masked) == len(FAILURES) == 12
    assert min(masked.values()) >= 5


def test_writing_workbooks_needs_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(workbook, "import_module", missing)
    with pytest.raises(ConfigError, match=r"pip install 'headrace\[report\]'"):
        write_samples(tmp_path)
