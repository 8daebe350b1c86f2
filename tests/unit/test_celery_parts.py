"""The pure parts of the Celery executor: settings, room, what becomes of calls, and what its messages may be."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from headrace import App
from headrace.engine.loops.aggregator import FARM_GRACE, OVERDUE_GRACE, Aggregator
from headrace.engine.loops.leadership import Leadership
from headrace.engine.middleware.time_limit import limit_time
from headrace.engine.workflows.patience import LONGEST
from headrace.executors.celery.judging import GONE_SECONDS, LOST_AT, Roll, Verdict, Waiting
from headrace.executors.celery.presence import decode_worker, encode_worker
from headrace.executors.celery.site import CelerySite, longest_timeout
from headrace.farm import FarmProcess
from headrace.farm_calls import BEGIN_SECONDS, FETCH_SECONDS, RECORD_SECONDS, STUBBORN_SECONDS
from headrace.model.errors import ConfigError
from headrace.model.farm import BEGUN, OVERDUE_SECONDS, PAID, Begun, FarmWorker, Fence, room
from headrace.model.stats import Rescued
from headrace.ports.executor import Farm
from headrace.settings import Settings, load_settings
from headrace.stores.memory import open_memory_stores
from headrace.wiring.farm import make_farm

WORKER = FarmWorker("w", "host", frozenset({"llm"}), 2, frozenset({11, 12}), 100.0)
BROKER = "redis://:secret@broker.example/0"


def settings(text: str, tmp_path: Path, **environ: str) -> Settings:
    """Read a file."""
    file = tmp_path / "headrace.toml"
    file.write_text(text)
    return load_settings(environ=environ, file=file)


def test_a_queue_says_where_it_runs(tmp_path: Path) -> None:
    """A queue's own word wins over that of `[worker]`; the engine's queues run here, whatever is said."""
    text = (
        '[worker]\nexecutor = "celery"\n[queues.here]\nexecutor = "local"\nconcurrency = 3\n[queues.llm]\nburst = 9\n'
    )
    read = settings(text, tmp_path, HEADRACE_CELERY_BROKER_URL=BROKER)
    places = {name: read.executor_of(name) for name in ("default", "here", "llm", "workflows", "nodes", "webhooks")}
    assert [name for name, place in places.items() if place == "celery"] == ["default", "llm"]
    assert read.queues["here"].options() == {"concurrency": 3}
    assert "secret" not in repr(read)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[queues.llm]\nexecutor = "rays"', 'queues.llm.executor must be "local", "celery" or "ray"'),
        ('[worker]\nexecutor = "cellery"', 'worker.executor must be "local", "celery" or "ray"'),
        (
            '[celery]\nbroker_url = "amqp://guest:secret@host"',
            r"celery.broker_url must begin with redis:// or rediss://$",
        ),
        ('[celery]\nqueue_prefix = "a b"', "celery.queue_prefix must be"),
    ],
)
def test_wrong_settings_name_key_and_fix(text: str, message: str, tmp_path: Path) -> None:
    """They stop the start, and a password is not repeated."""
    with pytest.raises(ConfigError, match=message) as caught:
        settings(text, tmp_path)
    assert "secret" not in str(caught.value)


def farm_of(app: App) -> Farm | None:
    """Return the farm of an app, with a store that nobody asks."""
    return make_farm(app, app.settings, None)  # type: ignore[arg-type]


def test_a_farm_needs_a_store_and_jobs_that_it_can_take(tmp_path: Path) -> None:
    """A memory store, and tasks that take jobs together, are refused with the fix; without a word there is no farm."""
    read = settings('[worker]\nexecutor = "celery"', tmp_path, HEADRACE_CELERY_BROKER_URL=BROKER)
    assert farm_of(App(settings=Settings())) is None
    with pytest.raises(ConfigError, match=r"set .celery. broker_url to redis://HOST"):
        farm_of(App(settings=settings('[queues.llm]\nexecutor = "celery"', tmp_path)))
    with pytest.raises(ConfigError, match="use PostgreSQL or Redis, not memory"):
        farm_of(App("memory://", settings=read))
    app = App(settings=read)
    assert farm_of(app) is not None

    @app.task(queue="embed", batch_size=8)
    async def embed(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    with pytest.raises(ConfigError, match=r'write executor = "local" into \[queues.embed\]'):
        farm_of(app)


def test_celery_is_set_for_work_that_must_not_be_lost() -> None:
    """JSON alone, late acknowledgement, no hoarding, no retries, no results, and a time for tasks to end in."""
    longest = longest_timeout([timedelta(seconds=90), None, timedelta(hours=2)], timedelta(minutes=5))
    conf = CelerySite(BROKER, "shop").celery(longest).conf
    assert (conf.accept_content, conf.task_serializer, conf.result_serializer) == (["json"], "json", "json")
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (True, True, 1)
    assert (conf.task_ignore_result, conf.task_publish_retry, conf.result_backend) == (True, False, None)
    assert conf.broker_transport_options["visibility_timeout"] == 7200 + 60
    assert conf.broker_transport_options["unacked_key"] == "shop:farm:unacked"
    assert CelerySite(BROKER, "shop").queue_name("llm") == "shop.llm"
    assert "secret" not in repr(CelerySite(BROKER, "shop"))


def test_room_is_what_all_queues_leave_and_one_share_of_it() -> None:
    """Slots serve several queues; workers that stop have none; senders share, and no slot is given twice."""
    both = replace(WORKER, queues=frozenset({"llm", "cpu"}))
    farm = [WORKER, both, replace(both, id="c", closing=True)]

    def alone(queue: str, **taken: int) -> int:
        return room(queue, farm, {"me": {"llm": 0, "cpu": 0, "mail": 0} | taken}, "me")

    assert (alone("llm"), alone("cpu"), alone("mail")) == (4, 2, 0)
    assert (alone("llm", cpu=2), alone("llm", llm=2), alone("cpu", llm=2)) == (2, 2, 2)
    assert (alone("cpu", llm=3), alone("llm", llm=9)) == (1, 0)


@pytest.mark.parametrize("at", range(0, 120, 4))
def test_workers_share_a_farm_and_none_goes_without(at: int) -> None:
    """Shares never add up to more than there is; what is left over goes round."""
    senders: dict[str, dict[str, int]] = {name: {"llm": 0} for name in "xyz"}
    shares = [room("llm", [replace(WORKER, slots=5, at=float(at))], senders, name) for name in senders]
    assert sorted(shares) == ([1, 1, 1] if at % 20 < 5 else [1, 2, 2])
    rounds = [
        room("llm", [replace(WORKER, slots=1, at=at // 20 * 20.0 + 20 * turn + 10)], senders, "x") for turn in range(3)
    ]
    assert sorted(rounds) == [0, 0, 1]


def test_who_came_first_leaves_what_it_has_not_taken() -> None:
    """One who has the whole farm keeps it until its jobs end; the next one gets nothing that is not free."""
    farm = [WORKER]
    assert room("llm", farm, {"a": {"llm": 2}, "b": {"llm": 0}}, "b") == 0
    assert room("llm", farm, {"a": {"llm": 2}, "b": {"llm": 0}}, "a") == 0
    assert room("llm", farm, {"a": {"llm": 1}, "b": {"llm": 0}}, "b") == 1


def test_queues_that_share_slots_have_one_farm() -> None:
    """One worker sends jobs of one queue, another of another; both run in the same slots."""
    farm = [replace(WORKER, queues=frozenset({"llm", "cpu"}), slots=4)]
    senders = {"a": {"llm": 0}, "b": {"cpu": 0}, "elsewhere": {"mail": 0}}
    assert (room("llm", farm, senders, "a"), room("cpu", farm, senders, "b")) == (2, 2)
    assert room("llm", farm, senders, "b") == 2
    assert room("llm", farm, {**senders, "b": {"cpu": 3}}, "a") == 1


def test_what_a_worker_says_is_read_as_it_was_meant() -> None:
    """Queues and processes survive the way through the broker; what a newer version adds is passed over."""
    assert decode_worker(encode_worker(WORKER)) == WORKER
    newer = json.loads(encode_worker(WORKER)) | {"version": "2"}
    assert decode_worker(json.dumps(newer)) == WORKER
    begun = Begun("w", 1, 2.0, "s", 3, 4)
    assert Begun.of(json.loads(begun.text) | {"version": "2"}) == begun


def seen_at(*moments: float, worker: FarmWorker = WORKER) -> Roll:
    """Return a roll that saw a worker at some moments."""
    roll = Roll()
    for moment in moments:
        roll.note({worker.id: worker}, moment)
    return roll


def test_a_call_that_nobody_began_is_sent_again_and_then_given_up() -> None:
    """Three times, ever later; at once where no worker takes its queue any more."""
    waiting, roll = Waiting("llm", 0.0, 300.0), seen_at(*range(40))
    verdicts = [waiting.judge(None, roll, float(second)) for second in range(31)]
    sent = [second for second, verdict in enumerate(verdicts) if verdict is Verdict.SEND_AGAIN]
    assert (sent, verdicts[-1], LOST_AT) == ([2, 6, 14], Verdict.GIVE_UP, 30.0)
    assert verdicts.count(Verdict.WAIT) == 27
    closing = seen_at(*range(9), worker=replace(WORKER, closing=True))
    assert Waiting("llm", 8.0, 300.0).judge(None, closing, 8.0) is Verdict.GIVE_UP


def test_a_process_is_dead_when_its_worker_names_it_no_more() -> None:
    """One that was begun after the worker spoke may be missing; one that is named lives."""
    begun = Begun("w", 13, 90.0, "sign", 1)
    judge = Waiting("llm", 0.0, 300.0).judge
    assert judge(begun, seen_at(0), 0.5) is Verdict.CRASHED
    assert judge(replace(begun, at=99.5), seen_at(0), 0.5) is Verdict.WAIT
    assert judge(replace(begun, pid=11), seen_at(0), 0.5) is Verdict.WAIT
    # One that is being stopped ends its processes itself.
    assert judge(begun, seen_at(0, worker=replace(WORKER, closing=True)), 0.5) is Verdict.WORKER_GONE


def test_a_worker_is_gone_when_it_was_missed_long_enough() -> None:
    """Beats that the broker lost, a broker that is away, and a worker that has just come are no deaths."""
    for begun in (Begun("w", 11, 90.0, "sign", 1), Begun("new", 11, 90.0, "sign", 1)):
        waiting, roll = Waiting("llm", 0.0, 300.0), seen_at(0, 1)
        for second in (2.0, 4.0, 6.0):
            roll.note({}, second)
            assert waiting.judge(begun, roll, second) is Verdict.WAIT
        roll.miss()
        assert waiting.judge(begun, roll, 60.0) is Verdict.WAIT
        for second in (60.0, 62.0, 64.9):
            roll.note({}, second)
            assert waiting.judge(begun, roll, second) is Verdict.WAIT
        roll.note({}, 60.0 + GONE_SECONDS)
        assert waiting.judge(begun, roll, 60.0 + GONE_SECONDS) is Verdict.WORKER_GONE


def test_one_look_after_a_stall_convicts_nobody() -> None:
    """A broker, or this process, stood still for a while: who is missing then may only have had no chance to speak."""
    begun, waiting, roll = Begun("w", 11, 90.0, "sign", 1), Waiting("llm", 0.0, 300.0), seen_at(0)
    roll.note({}, GONE_SECONDS + 0.1)
    assert waiting.judge(begun, roll, GONE_SECONDS + 0.1) is Verdict.WAIT
    roll.note({}, 60.0)
    assert waiting.judge(begun, roll, 60.0) is Verdict.WAIT
    roll.note({"w": WORKER}, 60.5)
    assert waiting.judge(begun, roll, 60.5) is Verdict.WAIT


def test_a_call_has_its_time_from_when_it_was_begun() -> None:
    """However late that was; the farm ends it itself, and only what it has forgotten is given up, broker or not."""
    begun, waiting, roll = Begun("w", 11, 90.0, "sign", 1), Waiting("llm", 0.0, 10.0), seen_at(29)
    assert waiting.judge(None, roll, 29.0) is not Verdict.GIVE_UP
    assert waiting.judge(begun, roll, 29.5) is Verdict.WAIT
    assert waiting.judge(begun, roll, 29.5 + 10 + OVERDUE_SECONDS - 0.1) is Verdict.WAIT
    roll.miss()
    assert waiting.judge(begun, roll, 29.5 + 10 + OVERDUE_SECONDS) is Verdict.OVERDUE
    # Until then the farm has ended it by its own rules, whatever they make it wait for.
    own = BEGIN_SECONDS + FETCH_SECONDS + 2 * STUBBORN_SECONDS + LONGEST + RECORD_SECONDS
    assert own <= OVERDUE_SECONDS
    assert timedelta(seconds=LOST_AT + OVERDUE_SECONDS) < FARM_GRACE


async def test_who_sent_a_call_does_not_keep_its_time() -> None:
    """The farm does, from when it began: until then a message may have been on its way for long."""

    async def proceed(_attempt: Any) -> str:
        await asyncio.sleep(0.02)
        return "ended"

    attempt: Any = SimpleNamespace(remote=True, call=SimpleNamespace(timeout=0.0))
    assert await limit_time(attempt, proceed) == "ended"


@pytest.mark.parametrize(("has_farm", "grace"), [(False, OVERDUE_GRACE), (True, FARM_GRACE)])
async def test_the_net_under_timeouts_lies_deeper_where_there_is_a_farm(has_farm: bool, grace: timedelta) -> None:
    """The leader counts from the claim, and a farm from when it began: who is in time there is not charged."""
    stores = open_memory_stores()
    graces: list[timedelta] = []

    async def note(*, grace: timedelta, **_: Any) -> Rescued:
        graces.append(grace)
        return Rescued()

    stores.jobs.fail_overdue_jobs = note  # type: ignore[method-assign]
    leadership = Leadership(stores, uuid4())
    await leadership.step()
    second = timedelta(seconds=1)
    await Aggregator(stores, leadership, interval=second, seal_timeout=second, has_farm=has_farm).step()
    assert graces == [grace]


def test_progress_is_what_the_store_has() -> None:
    """A step that is there after a crash and was not when the attempt began, or an answer that was paid for."""
    begun = Begun("w", 1, 2.0, "s", 2, steps=1)
    kept = {"a": "1", BEGUN: begun.text, PAID: '{"attempt": 1}'}
    assert not begun.progressed(kept)
    assert begun.progressed({**kept, "b": "2"})
    assert begun.progressed({**kept, PAID: '{"attempt": 2}'})


def test_a_queue_is_unserved_only_after_a_good_look() -> None:
    """While the broker is away, or was seen for a moment only, nobody says that no worker is there."""
    roll = Roll()
    assert roll.serves("llm", 0.0)
    roll.note({}, 0.0)
    assert roll.serves("llm", GONE_SECONDS - 0.1)
    assert not roll.serves("llm", GONE_SECONDS)
    roll.note({"w": WORKER}, 4.0)
    # A beat that the broker lost.
    roll.note({}, 5.0)
    assert (roll.serves("llm", 8.9), roll.serves("llm", 9.0), roll.serves("cpu", 8.9)) == (True, False, False)


def test_a_message_of_another_form_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing in a message is looked up, imported or trusted: it names an attempt, or it names nothing."""
    process = FarmProcess(App("memory://"))
    for message in (("os.system", 1, str(uuid4())), (str(uuid4()), "x", str(uuid4())), (None, None, None), ([], 1, {})):
        process.work(*message)
    assert caplog.text.count("a message that names no attempt is dropped") == 4


def test_a_fence_is_one_word() -> None:
    """It comes back as it went."""
    fence = Fence(uuid4(), 3, uuid4())
    assert Fence.parse(fence.word) == fence
    assert json.loads(Begun("w", 1, 2.0, "s", 1).text)["sign"] == "s"
