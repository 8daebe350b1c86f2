"""What memories elsewhere get wrong, each as a test: flushes that double, hang, vanish, or hold up the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from headrace.apps.memory.commands.following import until_ended
from headrace.apps.memory.data.flushes import Flush, FlushState, Held, Reason
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.means import TABLES
from headrace.apps.memory.memory import Memory
from headrace.apps.memory.opening import BUFFER
from headrace.apps.memory.samples.model import answer
from headrace.apps.memory.stages import watching
from headrace.apps.memory.stages.checking import MOST_NAMED, check_buffer
from headrace.apps.memory.stages.holding import held
from headrace.apps.memory.stages.sweeping import sweep_once
from headrace.apps.memory.tables import MemoryTables
from headrace.apps.memory.tables.values import NewBlob
from headrace.model_settings import ModelSettings
from headrace.testing.provider import ChatRequest, Latency, ScriptedProvider
from tests.faults.memory_line import chats, memory_line
from tests.unit.memory_world import settings_of, settled
from tests.waiting import wait_until

LONG_AGO = datetime(2026, 5, 1, tzinfo=UTC)
SOON = timedelta(seconds=12)


@dataclass
class World:
    """Memory with somebody who works, and a model."""

    memory: Memory
    provider: ScriptedProvider
    said: int = 0

    async def say(self, user_id: str, text: str, *, tokens: int = 80, id: UUID | None = None) -> UUID:
        """Let a user say something, that fills a buffer by itself unless it has fewer tokens."""
        data = {"messages": [{"role": "user", "content": text}]}
        self.said += 1
        at = LONG_AGO + timedelta(seconds=self.said)
        [stored] = await TABLES.insert_blobs([NewBlob(user_id, "chat", data, tokens, id or uuid4(), at)])
        return stored

    async def ended(self, flush: Flush, patience: timedelta = SOON) -> Flush:
        """Wait until a flush has ended."""

        async def look() -> Flush | None:
            found = await TABLES.find_flush(flush.id)
            assert found is not None
            return found if found.state in (FlushState.DONE, FlushState.FAILED) else None

        found = await wait_until(look, patience, message="a flush to end")
        assert found is not None
        return found

    async def execute(self, sql: str, *values: Any) -> Any:
        """Run a statement of the test's own and return its rows; {s} is the schema of the tables."""
        schema = self.memory.app.settings.memory.schema
        async with self.memory.app.database() as connection:
            return await connection.fetch(sql.replace("{s}", f'"{schema}"'), *values)


@asynccontextmanager
async def at_work(
    folder: Path, *, says: Callable[[ChatRequest], Any] = answer, latency: float = 0.0, **memory: Any
) -> AsyncIterator[World]:
    """Run memory in this process; `says`: what the model answers."""
    usual = {"buffer_tokens": 64, "lease": timedelta(seconds=5), "batch_window": timedelta(0)}
    async with ScriptedProvider(answer=says, latency=Latency(timedelta(seconds=latency))) as provider:
        llm = ModelSettings(model=provider.model, base_url=provider.base_url, api_key=provider.api_key)
        with settled(settings_of(folder, llm, **{**usual, **memory})) as app:
            async with app.worker():
                yield World(Memory(), provider)


async def test_who_lost_a_flush_takes_it_up_again(tmp_path: Path) -> None:
    """A lease that ended while nobody else took the flush: the work goes on at once, and no answer is bought twice."""
    async with at_work(tmp_path, latency=1.0) as world:
        await world.say("ada", "I live in Lyon.")
        [flush] = await world.memory.flush("ada")
        await wait_until(lambda: world.provider.count() >= 2)
        await world.execute("UPDATE {s}.flushes SET lease_until = now() - interval '1 second'")
        assert await TABLES.release_expired(10) == [flush.id]
        assert (await world.ended(flush)).state is FlushState.DONE
        assert [slot.content for slot in await world.memory.profile("ada")] == ["Lyon"]
        assert len(await world.memory.events("ada")) == 1


async def test_an_error_that_stays_ends_a_flush_at_once_and_the_next_goes_on(tmp_path: Path) -> None:
    """It is failed, not in processing for ever; the next one is worked on; later it is tried again, and stands."""
    broken = [True]

    def says(request: ChatRequest) -> Any:
        return {"unexpected": True} if broken[0] and "Lyon" in request.text else answer(request)

    async with at_work(tmp_path, says=says, retry_failed_after=timedelta(milliseconds=1)) as world:
        await world.say("ada", "I live in Lyon.")
        await world.say("ada", "I like Assam.")
        first, second = await world.memory.flush("ada")
        assert (await world.ended(first)).state is FlushState.FAILED
        assert (await world.ended(second)).state is FlushState.DONE
        assert [slot.content for slot in await world.memory.profile("ada")] == ["Assam"]
        broken.clear()
        broken.append(False)
        await sweep_once()

        async def done() -> bool:
            found = await TABLES.find_flush(first.id)
            return found is not None and found.state is FlushState.DONE

        await wait_until(done, SOON, message="the failed flush to be done")
        assert [slot.content for slot in await world.memory.profile("ada")] == ["Lyon", "Assam"]
        assert len(await world.memory.events("ada")) == 2


async def test_a_late_failure_does_not_end_what_another_works_on(tmp_path: Path) -> None:
    """Who has lost a flush cannot fail it either."""
    async with at_work(tmp_path) as world:
        await world.say("ada", "I live in Lyon.")
        [flush] = await TABLES.make_flushes("ada", Reason.EXPLICIT, most_tokens=1_000)
        late = await TABLES.begin_flush(flush.id, SOON)
        held = await TABLES.begin_flush(flush.id, SOON)
        assert not await TABLES.fail_flush(flush.id, "too late", fence=late.fence)  # type: ignore[union-attr]
        assert await TABLES.fail_flush(flush.id, "no answer", fence=held.fence)  # type: ignore[union-attr]


async def test_who_was_forgotten_may_say_the_same_again(tmp_path: Path) -> None:
    """The same blobs of a user who was deleted meanwhile are a flush of their own, and their end is waited for."""
    said = [{"role": "user", "content": "I live in Lyon."}]
    async with at_work(tmp_path, latency=0.3) as world:
        blob, found = uuid4(), list[Flush]()
        for _ in range(2):
            submitted = await world.memory.submit("ada", said, blob_id=blob)
            await submitted.run.result(20)
            assert [slot.content for slot in await world.memory.profile("ada")] == ["Lyon"]
            found += await world.memory.flushes("ada")
            await world.memory.delete_user("ada")
            assert await world.memory.profile("ada") == []
        assert found[0].id == found[1].id and {flush.state for flush in found} == {FlushState.DONE}


async def test_a_user_who_is_deleted_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Neither a profile nor a run that hangs; who comes after is not held up."""
    async with at_work(tmp_path, latency=0.5) as world:
        await world.say("ada", "I live in Lyon.")
        await world.memory.flush("ada")
        await wait_until(lambda: world.provider.count() >= 2)
        await world.memory.delete_user("ada")

        async def over() -> bool:
            runs = await world.memory.app.runtime.stores.inspect.list_jobs(task="memory.store_flush")
            return bool(runs) and all(job.state.final for job in runs)

        await wait_until(over, SOON, message="the run to end")
        for table in ("users", "user_profiles", "user_events", "flushes", "buffer_zone", "general_blobs"):
            assert await world.execute(f"SELECT 1 FROM {{s}}.{table}") == [], table


async def test_a_buffer_into_which_something_came_meanwhile_is_not_idle(tmp_path: Path) -> None:
    """A look that comes late sees what is so then, not what was."""
    async with at_work(tmp_path, idle_flush=timedelta(hours=1)) as world:
        await world.say("ada", "I live in Lyon.", tokens=5)
        await (await check_buffer.enqueue("ada", Reason.IDLE.value)).result(10)
        assert (await world.memory.buffer("ada")).rows == 1
        await world.execute("UPDATE {s}.buffer_zone SET updated_at = now() - interval '2 hours'")
        assert await sweep_once() == 1
        [flush] = await wait_until(lambda: world.memory.flushes("ada"), SOON)
        assert flush.reason is Reason.IDLE
        assert (await world.ended(flush)).state is FlushState.DONE


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_an_idle_buffer_is_flushed_by_whoever_works_also_when_one_dies(tmp_path: Path) -> None:
    """The sweep begins at a full minute and goes on all the time; its worker may die."""
    async with memory_line(tmp_path, idle_flush="1s") as line:
        worker = line.start()
        for place, blob in enumerate(chats(3, 1, Random(1))):
            await line.insert([blob])

            async def flushed(count: int = place + 1) -> bool:
                rows = await line.query("SELECT reason FROM {s}.flushes WHERE state = 'done'")
                return [row["reason"] for row in rows] == ["idle"] * count

            # The first one waits for the minute, the others do not.
            await wait_until(flushed, timedelta(seconds=90 if place == 0 else 40), message="an idle flush")
            worker.kill()
            worker = line.start()


async def test_a_call_that_waits_long_for_its_turn_is_still_shared(tmp_path: Path) -> None:
    """Flushes of a batch do not ask for themselves as long as its job is there, however long that takes."""
    async with at_work(tmp_path) as world:
        await world.memory.app.pause("memory_process", reason="quota used up")
        for name in ("ada", "ben", "cleo"):
            await world.say(name, f"My name is {name}.")
            await world.memory.check(name)
        await wait_until(lambda: world.execute("SELECT 1 FROM {s}.batches"), SOON)
        await world.execute("UPDATE {s}.batches SET created_at = now() - interval '1 hour'")
        await world.execute("UPDATE {s}.flushes SET looked_at = now() - interval '1 hour'")
        await sweep_once()
        await world.memory.app.resume("memory_process")

        async def done() -> bool:
            return len(await world.memory.flushes(state="done")) == 3

        await wait_until(done, SOON, message="three flushes to be done")
        assert world.provider.count("Task: shared ") >= 1
        assert world.provider.count("Task: summary ") == 0


async def test_a_profile_that_somebody_changes_meanwhile_is_merged_again(tmp_path: Path) -> None:
    """Event, profile and rows are stored together or not at all; an answer that no longer fits is not stored."""
    async with at_work(tmp_path) as world:
        await world.say("ada", "I like Assam.")
        [flush] = await world.memory.flush("ada")
        await world.ended(flush)
        await world.memory.app.pause("memory_storage", reason="to look at it")
        await world.say("ada", "I like mint.")
        [flush] = await world.memory.flush("ada")

        async def made() -> bool:
            return await TABLES.load_result(flush.id) is not None

        await wait_until(made, SOON, message="the answers")
        [slot] = await world.memory.profile("ada")
        change = ProfileChange("update", slot.topic, slot.sub_topic, "rye bread", slot.version)
        await world.memory.change_profile("ada", [change])
        await world.memory.app.resume("memory_storage")
        assert (await world.ended(flush)).state is FlushState.DONE
        [slot] = await world.memory.profile("ada")
        assert (slot.content, slot.version) == ("rye bread; mint", 3)
        assert len(await world.memory.events("ada")) == 2


async def test_a_buffer_beyond_what_a_flush_takes_is_split_and_all_of_it_is_remembered(tmp_path: Path) -> None:
    """In the order of time; the newest stands, and nothing is dropped."""
    async with at_work(tmp_path, most_tokens=100) as world:
        for number in range(7):
            await world.say("ada", f"I live in Lyon{number}. I like Assam{number}.", tokens=60)
        unfinished = await world.memory.flush("ada")
        assert [flush.number for flush in unfinished] == list(range(1, 8))
        await world.ended(unfinished[-1], timedelta(seconds=30))
        found = {slot.sub_topic: slot.content for slot in await world.memory.profile("ada")}
        likes = "; ".join(f"Assam{number}" for number in range(7))
        assert found == {"city": "Lyon6", "likes": likes}
        assert len(await world.memory.events("ada")) == 7


async def test_a_users_own_language_is_written(tmp_path: Path) -> None:
    """Whatever the messages are in: the model is asked in it, for a summary alone and for all that follows."""
    asked: list[str] = []

    def says(request: ChatRequest) -> Any:
        asked.append(request.text)
        return answer(request)

    async with at_work(tmp_path, says=says) as world:
        await world.memory.put_user("ada", language="zh")
        await world.say("ada", "My name is Ada. I live in Lyon.")
        [flush] = await world.memory.flush("ada")
        assert (await world.ended(flush)).state is FlushState.DONE
        assert asked and all("任务：" in text for text in asked)
        await world.memory.change_profile("ada", [ProfileChange("add", "interest", "drink", "tea", 0)])
        assert (await world.memory.context("ada", budget=100)).startswith("# 关于用户的已知信息")


async def test_a_sweep_asks_for_an_idle_buffer_once(tmp_path: Path) -> None:
    """However often it finds it before anybody has looked, as where jobs wait behind an open breaker."""
    with settled(settings_of(tmp_path, idle_flush=timedelta(milliseconds=1))) as app:
        async with app:
            memory = Memory()
            await memory.set_up()
            for user in ("ada", "bob"):
                await memory.insert(user, [{"role": "user", "content": "I like rye."}])
            found = [await sweep_once() for _ in range(3)]
            assert found == [2, 0, 0]
            jobs = await app.runtime.stores.inspect.list_jobs(queue=BUFFER)
            assert [job.task for job in jobs] == ["memory.check_buffer"] * 2


async def test_a_sweep_lets_the_window_of_a_batch_pass(tmp_path: Path) -> None:
    """What waits for company is grouped when its window is over, and no sooner because somebody sweeps."""
    with settled(settings_of(tmp_path, batch_window=timedelta(hours=1))) as app:
        async with app:
            memory = Memory()
            await memory.set_up()
            await memory.insert("ada", [{"role": "user", "content": "I like rye."}])
            await TABLES.make_flushes("ada", Reason.IDLE, most_tokens=100)
            await sweep_once()
            assert len(await TABLES.waiting_unbatched(10)) == 1
            async with app.database() as connection:
                schema = app.settings.memory.schema
                await connection.execute(f"UPDATE \"{schema}\".flushes SET created_at = now() - interval '1 hour'")
            await sweep_once()
            assert await TABLES.waiting_unbatched(10) == []


async def test_a_sweep_deletes_what_was_done_long_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush, with what was summarised; what became of it stays, and what was done of late."""
    monkeypatch.setattr(watching, "_LOOKED_AT", {})
    async with at_work(tmp_path) as world:
        await world.say("ada", "I live in Lyon.")
        await world.say("ada", "I like Assam.")
        old, late = await world.memory.flush("ada")
        assert [(await world.ended(flush)).state for flush in (old, late)] == [FlushState.DONE] * 2
        watching._LOOKED_AT.clear()
        await world.execute("UPDATE {s}.flushes SET ended_at = now() - interval '31 days' WHERE id = $1", old.id)
        await watching.look_around()
        assert [flush.id for flush in await world.memory.flushes("ada")] == [late.id]
        assert [slot.content for slot in await world.memory.profile("ada")] == ["Lyon", "Assam"]
        assert len(await world.memory.events("ada")) == 2


async def test_a_profile_may_be_large(tmp_path: Path) -> None:
    """Larger than what a step of a job may keep."""
    async with at_work(tmp_path) as world:
        entries = [ProfileChange("add", "notes", f"n{number}", "x" * 9_000, 0) for number in range(40)]
        await world.memory.put_user("ada")
        await world.memory.change_profile("ada", entries)
        submitted = await world.memory.submit("ada", [{"role": "user", "content": "I live in Lyon."}])
        assert [end["success"] for end in await submitted.run.result(20)] == [True]
        assert len(await world.memory.profile("ada")) == 41


async def test_a_look_at_very_many_blobs_has_a_result(tmp_path: Path) -> None:
    """Which names the last of them."""
    with settled(settings_of(tmp_path)) as app:
        async with app.worker(queues=[BUFFER]):
            await TABLES.set_up()
            data = {"messages": [{"role": "user", "content": "Hm."}]}
            await TABLES.insert_blobs([NewBlob("ada", "chat", data, 1, uuid4()) for _ in range(7_000)])
            job = await check_buffer.enqueue("ada", "explicit")
            looked = await job.result(20)
            flushes = await TABLES.unfinished("ada")
            assert sum(len(flush.blob_ids) for flush in flushes) == 7_000
            assert looked["flushes"] == [str(flush.id) for flush in flushes]
            assert looked["blob_ids"] == [str(one) for flush in flushes for one in flush.blob_ids][-MOST_NAMED:]


async def test_who_follows_a_flush_does_not_wait_for_a_forgotten_user(tmp_path: Path) -> None:
    """It is not there any more, and so not shown."""
    with settled(settings_of(tmp_path)) as app:
        async with app:
            memory = Memory()
            await memory.set_up()
            await memory.insert("ada", [{"role": "user", "content": "I like rye."}])
            begun = await memory.flush("ada")
            await memory.delete_user("ada")
            assert await until_ended(memory, begun, quiet=True) == []


async def test_a_lease_is_renewed_again_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is: the work goes on meanwhile."""
    renewed: list[UUID] = []

    async def renew(_: Any, flush: Held, _lease: timedelta) -> bool:
        renewed.append(flush.flush.id)
        if len(renewed) == 1:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        return True

    monkeypatch.setattr(MemoryTables, "renew", renew)
    with settled(settings_of(tmp_path, lease=timedelta(seconds=0.15))) as app:
        async with app:
            await TABLES.set_up()
            await TABLES.insert_blobs([NewBlob("ada", "chat", {"messages": []}, 1, uuid4())])
            [flush] = await TABLES.make_flushes("ada", Reason.EXPLICIT, most_tokens=10)
            begun = await TABLES.begin_flush(flush.id, SOON)
            assert isinstance(begun, Held)
            async with held(begun):
                await wait_until(lambda: len(renewed) > 1)
