"""Schedules from the command line: the example as its page tells it, on a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "01_schedules" / "jobs.py"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Place]:
    """Return a place with the app of the example."""
    with place(tmp_path) as made:
        shutil.copy(EXAMPLE, tmp_path / "jobs.py")
        yield made


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """Workers declare its schedules once, the leader plans them, a run is asked for, seen and worked."""
    for _ in range(2):
        example.worker()
    nightly, north, south = example.json("schedule", "list")
    assert [item["name"] for item in (nightly, north, south)] == ["nightly", "remind-north", "remind-south"]
    assert {item["state"] for item in (nightly, north, south)} == {"active"}
    assert all(len(item["upcoming"]) == 3 for item in (nightly, north, south))

    made = example.json("schedule", "run-now", "nightly")["job_id"]
    reminded = example.json("schedule", "run-now", "remind-south")["job_id"]
    for job in (made, reminded):
        example.until_state(job, "succeeded")
    [record] = example.json("schedule", "history", "nightly")
    assert (record["job_id"], record["manual"]) == (made, True)
    assert example.view(made).result == f"report of {record['fire_at'][:10]}"
    assert example.view(reminded).result == "reminded south"

    code, _, err = example.run("schedule", "forget", "remind-south")
    assert code == 2
    assert "--force" in err
    assert example.run("schedule", "pause", "remind-south")[1] == "remind-south is paused\n"
    assert example.json("schedule", "list")[2]["state"] == "paused"


def test_a_schedule_that_cannot_be_ends_the_worker_at_once(example: Place) -> None:
    """A wrong rule in the code is a configuration error: exit code 2, the field and the place, no trace."""
    (example.folder / "wrong.py").write_text(
        "from headrace import App\napp = App()\n@app.cron('61 3 * * *')\nasync def one(): ...\n", encoding="utf-8"
    )
    code, out, err = example.run("worker", "wrong:app")
    assert (code, out) == (2, "")
    assert "cron (minute) must be 0 to 59" in err
    assert "wrong.py:3" in err
    assert "Traceback" not in err


def test_the_leader_fires_by_the_clock_of_the_database(example: Place) -> None:
    """A schedule whose time has come makes its job within seconds, with the time it was for."""
    example.worker()
    wait_until_sync(lambda: len(example.json("schedule", "list")) == 3)
    example.ask(lambda app: _set_back(example))
    wait_until_sync(lambda: example.json("schedule", "history", "nightly"))
    [record] = example.json("schedule", "history", "nightly")
    assert not record["manual"]
    example.until_state(record["job_id"], "succeeded")
    assert example.view(record["job_id"]).result == f"report of {record['fire_at'][:10]}"


async def _set_back(place: Place) -> None:
    """Let two fire times of the night job be missed, of which one is made up for."""
    connection = await asyncpg.connect(place.url)
    await connection.execute(
        f"""UPDATE "{place.schema}".schedules SET after_at = now() - interval '2 days', next_at = now()
        WHERE name = 'nightly'"""
    )
    await connection.close()
