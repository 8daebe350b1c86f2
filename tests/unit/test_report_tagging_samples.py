"""The sample files: how many of their cases need no model to be told their module."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.apps.report.ingest.reading import read_file
from headrace.apps.report.samples.writing import WRITERS
from headrace.apps.report.tagging import tag_cases


@pytest.mark.parametrize("name", WRITERS)
def test_four_of_five_cases_of_the_samples_are_told_by_the_sheet_and_by_rules(name: str, tmp_path: Path) -> None:
    """Without any rules of one's own."""
    WRITERS[name](tmp_path / name, 1)
    cases = read_file(tmp_path / name).cases
    settled = sum(one.is_settled for one in tag_cases(cases))
    assert settled >= 0.8 * len(cases)
