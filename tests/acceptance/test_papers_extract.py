"""`headrace papers extract` on real processes: killed, started twice, resumed, extended."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import subprocess
from datetime import timedelta

import pytest

from tests.acceptance.papers_run import Place, place, write_documents
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.acceptance

DOCUMENTS = 60
CONCURRENCY = 10


def _kill_at(here: Place, answered: int) -> subprocess.Popen[str]:
    """Start the command and SIGKILL every process once so many calls were answered."""
    process = here.start("--concurrency", str(CONCURRENCY))
    wait_until_sync(lambda: here.answered() >= answered or process.poll() is not None, timedelta(seconds=90))
    assert process.poll() is None, process.communicate()
    here.kill_everything()
    process.communicate()
    return process


@pytest.mark.timeout(240)
def test_killed_three_times_every_document_ends_once_and_no_stored_answer_is_bought_again() -> None:
    """After kill -9 of every process at three random moments, the run ends whole and pays only what was in flight."""
    chance = random.Random()
    with place(DOCUMENTS, latency="0.1") as here:
        for third in range(3):
            _kill_at(here, chance.randrange(1 + 18 * third, 18 * (third + 1)))
        summary = here.extract("--concurrency", str(CONCURRENCY))
        calls = here.calls()
        assert summary["documents"] == summary["extracted"] == DOCUMENTS
        assert sorted(row["name"] for row in here.rows()) == [f"paper-{n:03}.txt" for n in range(DOCUMENTS)]
        assert len(calls) == DOCUMENTS
        assert calls.total() <= DOCUMENTS + 3 * CONCURRENCY
        # What was asked twice is on record, with what it may have cost at most.
        orphaned = here.record()["orphaned"]
        assert calls.total() - DOCUMENTS <= orphaned["calls"] <= 3 * CONCURRENCY
        assert summary["orphaned"] == orphaned
        again = here.extract()
        assert here.calls() == calls
        assert again["batch_id"] == summary["batch_id"]


def test_two_commands_at_the_same_moment_share_one_batch() -> None:
    """Equal commands started together end with the same batch, each document asked for once."""
    with place(12, latency="0.1") as here:
        both = [here.start("--json") for _ in range(2)]
        ended = [process.communicate(timeout=90) for process in both]
        assert [process.returncode for process in both] == [0, 0], ended
        ids = {json.loads(out)["batch_id"] for out, _ in ended}
        assert len(ids) == 1
        assert sorted(here.calls().values()) == [1] * 12


@pytest.mark.slow
def test_added_documents_are_appended_and_a_changed_template_extracts_anew() -> None:
    """The same command asks only for added documents; another template makes another run."""
    with place(4) as here:
        first = here.extract()
        write_documents(here.root / "documents", range(4, 6))
        second = here.extract()
        assert second["batch_id"] == first["batch_id"]
        assert second["documents"] == second["extracted"] == 6
        assert here.calls().total() == 6
        template = here.root / "template.yaml"
        template.write_text(template.read_text().replace("version: 1", "version: 2"), encoding="utf-8")
        assert here.extract()["batch_id"] != first["batch_id"]


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on() -> None:
    """Ctrl-C says that nothing is lost, and nothing is: the next run asks for no stored answer again."""
    with place(20, latency="0.3") as here:
        process = here.start("--concurrency", "4")
        wait_until_sync(lambda: here.answered() >= 4, timedelta(seconds=60))
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "the same command goes on" in told
        assert here.extract()["extracted"] == 20
        assert here.calls().total() <= 20 + 4


@pytest.mark.slow
def test_with_json_progress_is_shown_to_a_terminal_alone() -> None:
    """A person sees a bar on standard error; a program reads one document, and nothing from standard error."""
    with place(6, latency="0.3") as here:
        screen, terminal = pty.openpty()
        with os.fdopen(screen, "rb") as shown:
            process = here.start("--json", "--concurrency", "2", stderr=terminal)
            os.close(terminal)
            seen = b"".join(iter(lambda: _read(shown.fileno()), b""))
            out, _ = process.communicate(timeout=60)
        assert json.loads(out)["extracted"] == 6
        assert b"extracting" in seen
        assert b"0 failed" in seen
        again = here.start("--json")
        out, told = again.communicate(timeout=60)
        assert (json.loads(out)["extracted"], told) == (6, "")


def _read(terminal: int) -> bytes:
    """Return what was written, or nothing once nobody can write any more."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def test_unreadable_files_are_rows_with_reasons_and_duplicates_are_asked_for_once() -> None:
    """A broken PDF is a row, a copy is no second call, and an empty folder is a usage error."""
    with place(2) as here:
        documents = here.root / "documents"
        (documents / "copy.txt").write_bytes((documents / "paper-000.txt").read_bytes())
        (documents / "broken.pdf").write_bytes(b"%PDF-1.7 not really")
        (documents / "empty.txt").write_bytes(b"")
        summary = here.extract()
        assert (summary["documents"], summary["extracted"], summary["unreadable"]) == (4, 2, 2)
        assert summary["duplicates"] == 1
        assert here.calls().total() == 2
        assert {row["state"] for row in here.rows()} == {"completed", "error"}
        (here.root / "nothing").mkdir()
        refused = here.start(folder="nothing")
        _, told = refused.communicate(timeout=60)
        assert refused.returncode == 2
        assert "No documents selected" in told


@pytest.mark.slow
def test_an_estimate_spends_nothing_and_a_pilot_is_part_of_the_run() -> None:
    """Estimates ask and submit nothing; the pilot's answers are not bought again; run.json tells how it was done."""
    with place(8) as here:
        before = here.extract("--estimate")
        assert (before["documents"], before["calls"], before["done_before"]) == (8, 8, 0)
        assert here.calls().total() == 0
        assert not (here.root / "out").exists()
        assert here.extract("--pilot", "3")["documents"] == 3
        left = here.extract("--estimate")
        assert (left["documents"], left["calls"], left["done_before"]) == (5, 5, 3)
        assert here.extract()["documents"] == 8
        assert here.calls().total() == 8
        assert here.extract("--estimate")["calls"] == 0


@pytest.mark.slow
def test_dual_extraction_asks_twice_and_lists_what_differs() -> None:
    """Two wordings are two calls a document, a disagreement has two candidates, and another second model is refused."""
    with place(3) as here:
        here.extract()
        # The answers in the first wording are stored, and cost nothing.
        assert here.extract("--dual", "prompts", "--estimate")["calls"] == 3
        summary = here.extract("--dual", "prompts")
        assert here.calls().total() == 6
        assert (summary["usage"]["calls"], summary["usage"]["reused"]) == (3, 3)
        disputed = [field for row in here.rows() for field in row["fields"].values() if field["agreed"] is False]
        assert len(disputed) == summary["disagreements"] == summary["fields"]["needs_review"]
        assert all(len(field["candidates"]) == 2 and field["value"] is None for field in disputed)
        record = here.record()
        assert record["orphaned"]["calls"] == 0
        assert [asking["prompt_version"] for asking in record["models"]] == ["papers-1", "papers-1-second"]
        assert record["counts"]["disagreements"] == summary["disagreements"]
        assert record["begun_at"] <= record["ended_at"] <= record["written_at"]
        refused = here.start("--dual", "nobody")
        _, told = refused.communicate(timeout=60)
        assert refused.returncode == 2
        assert "--dual must be 'prompts'" in told


@pytest.mark.slow
def test_a_pilot_is_compared_with_known_values() -> None:
    """Accuracy by field is told and written; a fault of the sheet is told before anything is asked."""
    with place(3) as here:
        gold = here.root / "gold.csv"
        gold.write_text("document,field,value\npaper-000.txt,sampel,10\n", encoding="utf-8")
        refused = here.start("--gold", "gold.csv")
        _, told = refused.communicate(timeout=60)
        assert refused.returncode == 2
        assert "gold.csv, line 2" in told
        assert here.calls().total() == 0
        lines = [f"paper-{number:03}.txt,sample,{number + 10}" for number in range(3)]
        gold.write_text("\n".join(["document,field,value", *lines]), encoding="utf-8")
        accuracy = here.extract("--gold", "gold.csv")["accuracy"]
        assert (accuracy["values"], accuracy["documents"]) == (3, 3)
        written = json.loads((here.root / "out" / "accuracy.json").read_text(encoding="utf-8"))
        assert written["fields"] == accuracy["fields"]
