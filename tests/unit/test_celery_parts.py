"""The pure parts of the Celery executor: settings, room, what becomes of calls, and what its messages may be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from headrace import App
from headrace.executors.celery.judging import GONE_SECONDS, LOST_AT, Begun, Roll, Verdict, Waiting
from headrace.executors.celery.presence import decode_worker, encode_worker
from headrace.executors.celery.site import CelerySite, longest_timeout
from headrace.farm import FarmProcess
from headrace.model.errors import ConfigError
from headrace.model.farm import FarmWorker, Fence, room
from headrace.ports.executor import Farm
from headrace.settings import Settings, load_settings
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
        ('[queues.llm]\nexecutor = "ray"', 'queues.llm.executor must be "local" or "celery"'),
        ('[worker]\nexecutor = "cellery"', 'worker.executor must be "local" or "celery"'),
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
    return make_farm(app.settings, app.registry, None)  # type: ignore[arg-type]


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
    """JSON alone, late acknowledgement, no hoarding, no retries, no results, and a time that no job exceeds."""
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
    assert (room("llm", farm, {}), room("cpu", farm, {}), room("mail", farm, {})) == (4, 2, 0)
    assert (room("llm", farm, {"cpu": 2}), room("llm", farm, {"llm": 2}), room("cpu", farm, {"llm": 2})) == (2, 2, 2)
    assert (room("cpu", farm, {"llm": 3}), room("llm", farm, {"llm": 9})) == (1, 0)
    shares = [room("llm", [replace(WORKER, slots=5)], {}, place=place, of=3) for place in range(3)]
    assert (sorted(shares), sum(shares)) == ([1, 2, 2], 5)


def test_what_a_worker_says_is_read_as_it_was_meant() -> None:
    """Queues and processes survive the way through the broker."""
    assert decode_worker(encode_worker(WORKER)) == WORKER


def seen_at(*moments: float, worker: FarmWorker = WORKER) -> Roll:
    """Return a roll that saw a worker at some moments."""
    roll = Roll()
    for moment in moments:
        roll.note({worker.id: worker}, moment)
    return roll


def test_a_call_that_nobody_began_is_sent_again_and_then_given_up() -> None:
    """Three times, ever later; at once where no worker takes its queue any more."""
    waiting, roll = Waiting("llm", 0.0), seen_at(*range(40))
    verdicts = [waiting.judge(None, roll, float(second)) for second in range(31)]
    sent = [second for second, verdict in enumerate(verdicts) if verdict is Verdict.SEND_AGAIN]
    assert (sent, verdicts[-1], LOST_AT) == ([2, 6, 14], Verdict.NEVER_BEGUN, 30.0)
    assert verdicts.count(Verdict.WAIT) == 27
    hurried = Waiting("llm", 0.0, patience=6.0)
    assert [hurried.judge(None, roll, second) for second in (4.9, 5.0)] == [Verdict.SEND_AGAIN, Verdict.NEVER_BEGUN]
    closing = seen_at(*range(9), worker=replace(WORKER, closing=True))
    assert Waiting("llm", 8.0).judge(None, closing, 8.0) is Verdict.NEVER_BEGUN


def test_a_process_is_dead_when_its_worker_names_it_no_more() -> None:
    """One that was begun after the worker spoke may be missing; one that is named lives."""
    begun = Begun("w", 13, 90.0, "sign")
    judge = Waiting("llm", 0.0).judge
    assert judge(begun, seen_at(0), 0.5) is Verdict.CRASHED
    assert judge(replace(begun, at=99.5), seen_at(0), 0.5) is Verdict.WAIT
    assert judge(replace(begun, pid=11), seen_at(0), 0.5) is Verdict.WAIT


def test_a_worker_is_gone_when_it_was_missed_long_enough() -> None:
    """Beats that the broker lost, a broker that is away, and a worker that has just come are no deaths."""
    begun, waiting, roll = Begun("w", 11, 90.0, "sign"), Waiting("llm", 0.0), seen_at(0)
    roll.note({}, GONE_SECONDS - 0.1)
    assert waiting.judge(begun, roll, GONE_SECONDS - 0.1) is Verdict.WAIT
    roll.miss()
    assert waiting.judge(begun, roll, 60.0) is Verdict.WAIT
    roll.note({}, 60.0)
    assert waiting.judge(begun, roll, 60.0) is Verdict.WAIT
    roll.note({}, 60.0 + GONE_SECONDS)
    assert waiting.judge(begun, roll, 60.0 + GONE_SECONDS) is Verdict.WORKER_GONE
    stranger, other = replace(begun, worker="new"), Waiting("llm", 0.0)
    assert other.judge(stranger, roll, 70.0) is Verdict.WAIT
    assert other.judge(stranger, roll, 70.0 + GONE_SECONDS) is Verdict.WORKER_GONE


def test_a_queue_is_unserved_only_after_a_good_look() -> None:
    """While the broker is away, or was seen for a moment only, nobody says that no worker is there."""
    roll = Roll()
    assert roll.serves("llm", 0.0)
    roll.note({}, 0.0)
    assert roll.serves("llm", GONE_SECONDS - 0.1)
    assert not roll.serves("llm", GONE_SECONDS)


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
    assert json.loads(Begun("w", 1, 2.0, "s").text)["sign"] == "s"
