"""The samples and two runs of one product: figures of the whole report in all its forms, and the trend."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.output.wording import wording
from tests.acceptance.report_looks import cells_of, text_of
from tests.acceptance.report_run import Place, place
from tests.acceptance.report_workbooks import MESSY, write_small

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
GOLDENS = json.loads((Path(__file__).parent.parent / "unit" / "report_goldens.json").read_text(encoding="utf-8"))
STATUSES = ("passed", "failed", "blocked", "skipped", "unknown")
#: Of each sample: the pass rate of executed cases, and the verdict.
WANTED = {
    "clean.xlsx": (87.07, "fail"),
    "junit.xml": (67.86, "fail"),
    "messy.xlsx": (81.61, "fail"),
}


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    """A place with the samples; each test makes reports of its own there."""
    with place(rules=MESSY) as made:
        assert made.run("sample", "samples")[0] == 0
        yield made


def _figures(document: dict[str, Any]) -> dict[str, int]:
    return {status: document["stats"]["by_status"].get(status, 0) for status in STATUSES}


@pytest.mark.parametrize("name", WANTED)
def test_figures_of_the_samples_are_what_was_written_into_them(name: str, here: Place) -> None:
    """In JSON, on the page and in the workbook, counted anew from its rows."""
    golden, (rate, verdict) = GOLDENS[name], WANTED[name]
    lang = "zh" if name == "messy.xlsx" else "en"
    summary = here.report("build", f"samples/{name}", "--out", name, "--lang", lang)
    document, word = here.document(name), wording("zh" if lang == "zh" else "en")
    figures = {status: golden["statuses"].get(status, 0) for status in STATUSES}
    failing = figures["failed"] + figures["blocked"]
    assert (summary["status"], summary["verdict"], summary["degraded"]) == ("ok", verdict, [])
    assert _figures(document) == figures
    assert dict(Counter(case["status"] for case in document["cases"])) == golden["statuses"]
    assert document["stats"]["total"] == golden["cases"] == summary["metrics"]["cases"]
    assert document["stats"]["rates"]["pass_rate_of_executed"]["percent"] == rate
    assert sum(one["total"] for one in document["stats"]["modules"]) == golden["cases"]
    assert len(document["defects"]) == failing
    assert sorted(one for cluster in document["clusters"] for one in cluster["case_ids"]) == sorted(
        fact["case_id"] for fact in document["defects"]
    )
    assert document["validation"]["issues"] == golden["issues"]
    # The workbook: its rows, not what its summary says of them.
    header, *rows = cells_of(here.root / name / "report.xlsx", word("sheet.cases"))
    column = header.index(word("column.status"))
    found = Counter(row[column] for row in rows)
    assert found == {word.label("status", status): count for status, count in figures.items() if count}
    assert len(cells_of(here.root / name / "report.xlsx", word("sheet.failed"))) == failing + 1
    # The page.
    page = text_of(here.root / name / "report.html")
    assert f"{rate:g} %" in page
    assert word(f"verdict.{verdict}") in page
    for status, count in figures.items():
        assert f"{count}" in page, status


def test_two_runs_of_a_product_are_compared_and_clusters_keep_their_ids(here: Place) -> None:
    """Newly failing, fixed and still failing cases; a cluster is the same in the report after, or gone."""
    write_small(here.root / "monday.xlsx")
    write_small(here.root / "friday.xlsx", fixed="Login", broken="Cart")
    here.report("build", "monday.xlsx", "--out", "monday")
    compared = here.report("build", "friday.xlsx", "--out", "friday", "--previous", "monday/report.json")
    before, after = here.document("monday"), here.document("friday")
    trend = after["stats"]["trend"]
    assert (trend["newly_failing"], trend["fixed"]) == (["CART-4"], [f"LOGIN-{number}" for number in range(4)])
    assert sorted(trend["still_failing"]) == sorted(
        f"{name}-{number}" for name in ("CART", "PAYMENT", "SEARCH") for number in range(4)
    )
    assert (trend["rates"]["pass_rate_of_all"]["before"], trend["rates"]["pass_rate_of_all"]["now"]) == (70.37, 75.93)
    old, new = ({one["cluster_id"]: one for one in told["clusters"]} for told in (before, after))
    assert set(new) < set(old)
    assert all(one["seen_before"] for one in new.values())
    [gone] = set(old) - set(new)
    assert (trend["clusters"]["gone"], trend["clusters"]["new"]) == ([gone], [])
    assert all(case.startswith("LOGIN-") for case in old[gone]["case_ids"])
    page, word = text_of(here.root / "friday" / "report.html"), wording("en")
    assert word("text.no_previous") not in page
    assert "CART-4" in page
    assert compared["status"] == "ok"
    # A third one has both on its lines.
    here.report("build", "monday.xlsx", "--out", "later", "--previous", "friday/report.json")
    later = here.document("later")["stats"]["trend"]
    assert [point["job_id"] for point in later["history"]] == [before["run"]["job_id"], after["run"]["job_id"]]
    assert (later["newly_failing"], later["fixed"]) == ([f"LOGIN-{number}" for number in range(4)], ["CART-4"])
