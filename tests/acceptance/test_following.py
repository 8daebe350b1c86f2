"""Following a batch over HTTP while clients are cut and the service is killed: every event once, in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from tests.acceptance.command_runs import Place, Process, place
from tests.unit.event_reading import Event, Stream

pytestmark = pytest.mark.acceptance

#: Items, cuts, and the cuts after which the service is killed: in every run, and in a long one.
SHORT, LONG = (60, 9, (5,)), (300, 50, (10, 30))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """Name a folder with an app whose tasks take a moment."""
    with place(tmp_path) as made:
        (tmp_path / "slowly.py").write_text(
            "import asyncio\nfrom headrace import App\napp = App()\n\n"
            "@app.task(queue='slow')\nasync def double(number: int) -> int:\n"
            "    await asyncio.sleep(0.05)\n    return 2 * number\n"
        )
        yield made


def serve(here: Place) -> tuple[Process, str]:
    """Start the service and return it with its URL."""
    process = here.start("serve", "slowly:app", "--port", "0", "--json")
    return process, process.line()["url"]


async def take(url: str, path: str, last: int, most: int) -> list[Event]:
    """Return some events behind the last one that was seen, and cut the connection."""
    stream = await Stream.open(url, path, last=last)
    assert stream.status == 200
    try:
        return await asyncio.wait_for(stream.events(most), 30)
    finally:
        stream.close()


@pytest.mark.parametrize(
    ("items", "cuts", "kills"),
    [pytest.param(*SHORT, id="some"), pytest.param(*LONG, id="many", marks=pytest.mark.slow)],
)
def test_cuts_and_kills_lose_and_repeat_nothing(here: Place, items: int, cuts: int, kills: Sequence[int]) -> None:
    """A client is cut again and again, and the service is killed meanwhile and started again."""

    async def submit(app: App) -> UUID:
        task: Any = app.task(name="double", queue="slow")(lambda number: number)
        return (await app.submit(task, range(items))).id

    batch = here.ask(submit)
    process, url = serve(here)
    assert here.start("worker", "slowly:app", "--json", "--concurrency", "5").line()["event"] == "started"
    path, seen = f"/api/v1/batches/{batch}/events", list[Event]()
    for cut in range(cuts):
        seen += asyncio.run(take(url, path, seen[-1].id if seen else 0, 4))
        if cut in kills:
            process.tell(signal.SIGKILL)
            process.popen.wait()
            process, url = serve(here)
    seen += asyncio.run(take(url, path, seen[-1].id, 2 * items))
    assert [event.id for event in seen] == list(range(1, items + 2))
    assert sorted(event.data["index"] for event in seen[:-1]) == list(range(items))
    assert (seen[-1].type, seen[-1].data["succeeded"]) == ("closed", items)
    assert asyncio.run(take(url, path, 0, 2 * items)) == seen
