"""`headrace report` while the model is away, refuses or talks nonsense: a whole report, and the rest comes later."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.output.wording import wording
from headrace.apps.report.stages import CLUSTERS, DEFECTS, RENDER, TAGGING
from headrace.testing.provider import ProviderProcess
from tests.acceptance.report_looks import rows_of, stage_words, text_of
from tests.acceptance.report_run import FILES, NOWHERE, Place, place
from tests.acceptance.report_workbooks import CASES, FACT, LOST, MESSY, MODULES, QUESTIONS, write_small

pytestmark = pytest.mark.acceptance
GOLDENS = json.loads((Path(__file__).parent.parent / "unit" / "report_goldens.json").read_text(encoding="utf-8"))
SMALL = ("build", "cases.xlsx", "--out", "out")
#: Facts that the small workbook asks for.
FACTS = QUESTIONS - LOST - len(MODULES) - 2


def _is_whole(here: Place, *, lang: str, cases: int, failing: int, clusters: int) -> dict[str, Any]:
    """Check that a report has everything that code can tell, and return it."""
    word = wording("zh" if lang == "zh" else "en")
    assert sorted(path.name for path in (here.root / "out").iterdir()) == sorted(FILES)
    document = here.document("out")
    told = {name: len(document[name]) for name in ("cases", "assignments", "defects", "clusters")}
    assert told == {"cases": cases, "assignments": cases, "defects": failing, "clusters": clusters}
    assert document["stats"]["total"] == sum(document["stats"]["by_status"].values()) == cases
    rows = rows_of(here.root / "out" / "report.xlsx")
    sheets = {"cases": cases, "failed": failing, "defects": failing, "clusters": clusters}
    assert {name: rows[word(f"sheet.{name}")] - 1 for name in sheets} == sheets
    page = text_of(here.root / "out" / "report.html")
    assert all(case["case_id"] in page for case in document["cases"] if case["status"] in ("failed", "blocked"))
    return document


def _banner(here: Place, summary: dict[str, Any], lang: str, headline: str) -> None:
    """Check that the first screen says which stages lack the model, why, and what fills them in."""
    page, word = text_of(here.root / "out" / "report.html"), wording("zh" if lang == "zh" else "en")
    assert word(headline) in page
    for words in stage_words(lang, *(one["stage"] for one in summary["degraded"])):
        assert words in page
    for one in summary["degraded"]:
        assert f"reason.{one['reason']}" in word.words
        assert word.label("reason", one["reason"]) in page
    assert f"headrace report resume {summary['job_id']} --out DIR" in page


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_without_a_model_the_messy_report_is_whole_and_resume_asks_for_what_is_missing_once() -> None:
    """2,000 rows and nobody listens: statistics, failures and cases in all forms; then one call for each question."""
    with place(rules=MESSY) as here:
        assert here.run("sample", "samples")[0] == 0
        here.ask_model_at(NOWHERE)
        began = time.monotonic()
        down = here.report("build", "samples/messy.xlsx", "--out", "out", "--lang", "zh")
        seconds = time.monotonic() - began
        assert (down["status"], down["verdict"], down["usage"]["calls"]) == ("degraded", "fail", 0)
        assert [one["stage"] for one in down["degraded"]] == [TAGGING, DEFECTS, CLUSTERS, RENDER]
        document = _is_whole(here, lang="zh", cases=1984, failing=327, clusters=24)
        assert document["stats"]["by_status"] == GOLDENS["messy.xlsx"]["statuses"]
        assert all(one["llm_failed"] and one["snippet"] for one in document["defects"])
        assert not document["content"]["by_model"]
        _banner(here, down, "zh", "degraded.whole")
        here.ask_model_at(here.provider["base_url"])
        filled = here.report("resume", down["job_id"], "--out", "out")
        assert (filled["status"], filled["degraded"], filled["warnings"]) == ("ok", [], [])
        missing = sum(one["missing"] for one in down["degraded"])
        calls = here.calls()
        assert (calls.total(), len(calls), filled["usage"]["calls"]) == (missing, missing, missing)
        document = _is_whole(here, lang="zh", cases=1984, failing=327, clusters=24)
        assert all(one["by_model"] for one in document["defects"])
        assert document["content"]["by_model"]
        assert "headrace report resume" not in text_of(here.root / "out" / "report.html")
        again = here.report("resume", down["job_id"], "--out", "out")
        assert (again["status"], again["run_id"], here.calls()) == ("ok", filled["run_id"], calls)
        print(f"2,000 rows without a model: {seconds:.1f} s; {missing} questions asked once each")


@contextmanager
def _small(*faults: str, **changes: str) -> Iterator[Place]:
    with place(*(word for fault in faults for word in ("--fault", fault))) as here:
        write_small(here.root / "cases.xlsx")
        here.changes.update(changes)
        yield here


def _filled(here: Place, job_id: str, asked: int) -> dict[str, Any]:
    """Resume with a model that is well; check how many questions that took, each asked once, and that none is left."""
    with ProviderProcess("--answers", str(here.outside / "answers.json")) as well:
        here.ask_model_at(well.base_url)
        summary = here.report("resume", job_id, "--out", "out")
        assert (summary["status"], summary["degraded"]) == ("ok", [])
        assert sorted(one["calls"] for one in well.calls()) == [1] * asked
        assert here.report("resume", job_id, "--out", "out")["run_id"] == summary["run_id"]
        assert len(well.calls()) == asked
    _is_whole(here, lang="en", cases=CASES, failing=FACTS, clusters=len(MODULES))
    return summary


def _degraded(here: Place, **wanted: tuple[int, str]) -> dict[str, Any]:
    """Build a report that lacks so many answers of each kind, for that reason."""
    summary = here.report(*SMALL)
    kinds = {TAGGING: "tagging", DEFECTS: "defects", CLUSTERS: "clusters", RENDER: "text"}
    assert {kinds[one["stage"]]: (one["missing"], one["reason"]) for one in summary["degraded"]} == wanted
    assert summary["status"] == "degraded"
    _is_whole(here, lang="en", cases=CASES, failing=FACTS, clusters=len(MODULES))
    return summary


@pytest.mark.slow
def test_down_for_one_stage_the_others_are_by_the_model() -> None:
    """Facts fail and are tried again; on resume they are asked, and the text anew, which is told of other figures."""
    with _small(f"server_error:contains={FACT}") as here:
        summary = _degraded(here, defects=(FACTS, "provider_down"))
        _banner(here, summary, "en", "degraded.part")
        _filled(here, summary["job_id"], FACTS + 1)


@pytest.mark.slow
def test_a_model_that_hangs_is_given_up() -> None:
    """Calls end after their time; once five in a row did, nobody waits for the others."""
    with _small("hang", REPORT_SOFT="2") as here:
        began = time.monotonic()
        summary = here.report(*SMALL)
        seconds = time.monotonic() - began
        assert sum(one["missing"] for one in summary["degraded"]) == QUESTIONS
        assert {one["reason"] for one in summary["degraded"]} <= {"provider_timeout", "model_away"}
        _banner(here, summary, "en", "degraded.whole")
        print(f"a model that hangs, 2 s for an answer: {seconds:.1f} s, {here.calls().total()} calls")
        _filled(here, summary["job_id"], QUESTIONS)


def test_a_key_that_is_refused_is_no_reason_to_try_again() -> None:
    """HTTP 401 for all: each question once."""
    with _small("server_error:status=401") as here:
        all_of = {"tagging": LOST, "defects": FACTS, "clusters": len(MODULES) + 1, "text": 1}
        summary = _degraded(here, **{kind: (count, "auth") for kind, count in all_of.items()})
        assert here.calls().total() == QUESTIONS
        _filled(here, summary["job_id"], QUESTIONS)


@pytest.mark.slow
def test_over_budget_the_report_ends_and_a_raised_budget_fills_the_rest() -> None:
    """What was asked within the budget is not asked again."""

    def budget(tokens: int) -> None:
        command = [sys.executable, "-m", "headrace", "llm", "budget", "set", "day", "--tokens", str(tokens)]
        subprocess.run(command, cwd=here.root, env=here.environment, check=True, capture_output=True, timeout=60)

    with _small() as here:
        budget(1500)
        summary = here.report(*SMALL)
        assert {one["reason"] for one in summary["degraded"]} == {"budget_used_up"}
        asked = here.calls().total()
        assert 0 < asked < QUESTIONS
        assert asked + sum(one["missing"] for one in summary["degraded"]) == QUESTIONS
        _is_whole(here, lang="en", cases=CASES, failing=FACTS, clusters=len(MODULES))
        budget(1_000_000)
        filled = here.report("resume", summary["job_id"], "--out", "out")
        assert (filled["status"], here.calls().total(), set(here.calls().values())) == ("ok", QUESTIONS, {1})


@pytest.mark.slow
def test_nonsense_about_one_case_one_row_and_one_cluster_spoils_no_other() -> None:
    """Uncategorized with confidence 0; the raw row; a template's words with its ids; and all else by the model."""
    # What is asked about the cluster of Payment, the first row of each module, and one case without a module.
    nonsense = tuple(f"wrong_json:contains={words}" for words in ('representative": "PAYMENT-0', "press 0", "quince"))
    with _small(*nonsense) as here:
        summary = _degraded(
            here, tagging=(1, "bad_output"), defects=(len(MODULES), "bad_output"), clusters=(2, "bad_output")
        )
        document = here.document("out")
        modules = {one["case_id"]: (one["module"], one["confidence"]) for one in document["assignments"]}
        assert modules["QUINCE1"] == ("Uncategorized", 0.0)
        assert modules["OBOE1"] == ("Cart", 0.9)
        facts = {one["case_id"]: one for one in document["defects"]}
        assert facts["CART-0"]["llm_failed"]
        assert "Cart does its part 0" in facts["CART-0"]["snippet"]
        assert facts["CART-1"]["by_model"]
        page = text_of(here.root / "out" / "report.html")
        by_model = [one for one in document["clusters"] if one["named_by_model"]]
        [payment] = [one for one in document["clusters"] if not one["named_by_model"]]
        assert ({one["name"] for one in by_model}, len(by_model)) == ({"named by the model"}, len(MODULES) - 1)
        assert payment["commonality"] in page
        assert "PAYMENT-0" in payment["evidence"]
        assert set(payment["evidence"]) <= set(payment["case_ids"])
        # Each question that failed was repaired, and not tried again.
        assert set(here.calls().values()) == {1}
        # Its name and the merges that were not told, and the text, which is told of other figures.
        _filled(here, summary["job_id"], 1 + len(MODULES) + 2 + 1)
