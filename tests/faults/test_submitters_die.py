"""Submitters that are killed in the middle, or that come at the same moment."""

from __future__ import annotations

import subprocess
from uuid import UUID

from headrace import App
from headrace.model.batch import SLICE_ITEMS, BatchOutcome, BatchState
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE
from tests.faults.site import Site
from tests.faults.tasks import effect, report
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE
#: Streams numbers, slowly after the first slices, and says what it got.
STREAM = """
import asyncio, sys
from tests.faults.tasks import app, block, effect
count, slow_from = int(sys.argv[1]), int(sys.argv[2])
def numbers():
    for number in range(count):
        if number >= slow_from:
            block(1.0)
        yield number
async def main():
    async with app:
        print((await app.submit(effect, numbers(), key="stream")).id)
asyncio.run(main())
"""
#: Waits for the gate, so that two of them go at the same moment.
SUBMIT = """
import asyncio
from tests.faults.tasks import app, block, effect, gate_is_open, note
async def main():
    async with app:
        note("ready")
        while not gate_is_open("go"):
            block(0.001)
        print((await app.submit(effect, list(range(500)), key="same")).id)
asyncio.run(main())
"""


def answer(process: subprocess.Popen[bytes]) -> UUID:
    """Wait for a submitter and return the id it was given."""
    output, _ = process.communicate(timeout=40)
    assert process.returncode == 0
    return UUID(output.decode().strip())


async def test_a_stream_is_continued_after_its_submitter_was_killed(site: Site, app: App) -> None:
    """kill -9 of a submitter in the middle of a generator: the next one completes the batch, each item once."""
    count = 6 * SLICE_ITEMS + 123
    cut = site.start_script(STREAM, str(count), str(3 * SLICE_ITEMS))
    async with app:

        async def three_slices() -> bool:
            batch = await app.find_batch(effect, "stream")
            return batch is not None and (await batch.progress()).waiting == 3 * SLICE_ITEMS

        await wait_until(three_slices)
        cut.kill()
        cut.communicate()
        batch = await app.find_batch(effect, "stream")
        assert batch is not None
        assert (await batch.view()).state is BatchState.OPEN

        assert answer(site.start_script(STREAM, str(count), str(count))) == batch.id
        progress = await batch.progress()
        assert (progress.total, progress.waiting) == (count, count)
        assert list((await batch.arguments()).values()) == list(range(count))


async def test_items_run_while_their_submitter_dies(site: Site, app: App) -> None:
    """What a killed submitter had stored runs at once; the batch closes when a second one has sent the rest."""
    site.start_workers(1, "--concurrency", "50")
    count = SLICE_ITEMS + 10
    cut = site.start_script(STREAM, str(count), str(SLICE_ITEMS))
    async with app:
        await wait_until(lambda: len(site.effects("effect")) >= SLICE_ITEMS)
        cut.kill()
        cut.communicate()
        batch_id = answer(site.start_script(STREAM, str(count), str(count)))
        view = await app.batch(batch_id).wait(40)
        assert (view.outcome, view.total) == (BatchOutcome.SUCCEEDED, count)
    assert site.counts("effect") == dict.fromkeys(range(count), 1)
    assert (await check(site)).clean


async def test_two_equal_submits_at_one_moment_are_one_batch(site: Site, app: App) -> None:
    """Two processes that submit the same items under the same key get the same batch, and every item is there once."""
    submitters = [site.start_script(SUBMIT) for _ in range(2)]
    await wait_until(lambda: len(site.effects("ready")) == 2)
    site.open("go")
    ids = {answer(submitter) for submitter in submitters}
    assert len(ids) == 1
    async with app:
        batch = app.batch(ids.pop())
        assert (await batch.progress()).waiting == 500
        assert len(await app.runtime.stores.inspect.list_batches()) == 1


async def test_a_submitter_that_dies_after_the_commit_is_recognised(site: Site, app: App) -> None:
    """A list whose submitter was killed right after its commit is found again by its key, with its callback."""
    async with app:
        first = await app.submit(effect, [1, 2, 3], key="k", on_close=report)
        site.start_workers(1)
        await first.wait(20)
        again = await app.submit(effect, [1, 2, 3], key="k", on_close=report)
        assert again.id == first.id
        await wait_until(lambda: site.effects("closed"))
    assert site.counts("effect") == {1: 1, 2: 1, 3: 1}
    assert len(site.effects("closed")) == 1
