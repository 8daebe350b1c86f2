"""The command line as processes on a real PostgreSQL: exit codes, signals, the supervisor, what is printed."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest

from headrace import App
from headrace.hosting.state import read_state
from headrace.wiring import migrate
from tests.acceptance.command_runs import Place, Process, place
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.acceptance
#: What any command line of this kind needs.
LIBRARIES = "import asyncio, click, logging"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place for tests that look at no one's jobs but their own and need no worker."""
    with place(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Place]:
    """A place of one test."""
    with place(tmp_path) as made:
        yield made


# Exit codes


def test_0_and_the_whole_way_of_a_job(alone: Place) -> None:
    """Worker up, job enqueued and waited for, worker seen, worker stopped by SIGTERM: each ends with 0."""
    worker = alone.worker("--queue", "default:3")
    code, out, err = alone.run("enqueue", "jobs:app", "double", "21", "--wait", "--timeout", "20s")
    assert (code, out) == (0, "42\n"), err
    job = err.removeprefix("job ").strip()
    assert alone.json("job", "show", job)["result"] == 42
    [seen] = alone.json("workers")
    assert (seen["process"]["pid"], seen["queues"]) == (worker.popen.pid, {"default": 3})
    worker.tell(signal.SIGTERM)
    assert worker.line()["event"] == "stopped"
    assert worker.end() == 0


def test_1_when_the_awaited_job_failed(alone: Place) -> None:
    """A job that fails ends the command that waited for it with 1, and the error names the job."""
    alone.worker()
    code, out, err = alone.run("enqueue", "jobs.py", "refuse", "--wait", "--json")
    assert (code, out) == (1, "")
    error = json.loads(err)["error"]
    assert (error["code"], "not today" in error["message"]) == ("job_failed", True)
    assert alone.state(error["job_id"]) == "failed"


def test_2_for_a_wrong_configuration(shared: Place) -> None:
    """A setting that does not exist ends every command with 2, naming it."""
    (shared.folder / "wrong.toml").write_text("[worker]\nconcurency = 4\n", encoding="utf-8")
    code, _, err = shared.run("--config", "wrong.toml", "workers")
    assert code == 2
    assert "did you mean 'concurrency'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [("workers",), ("worker", "jobs:app"), ("worker", "jobs:app", "--processes", "2")])
def test_3_when_nobody_answers(shared: Place, command: tuple[str, ...]) -> None:
    """A store that cannot be reached ends commands and workers with 3, also under the supervisor."""
    code, out, err = shared.at("postgresql://headrace:hush@127.0.0.1:9/nowhere").run(*command, "--json")
    assert (code, out) == (3, ""), err
    assert '"store_unavailable"' in err
    assert "hush" not in err


def test_4_when_the_store_refuses_the_user(shared: Place) -> None:
    """A user that the database does not know ends with 4."""
    code, _, err = shared.at(shared.url.replace("headrace@", f"nobody_{uuid4().hex[:8]}@")).run("workers", "--json")
    assert code == 4
    assert json.loads(err)["error"]["code"] == "not_allowed"


def test_5_when_it_is_not_there(shared: Place) -> None:
    """An id that nothing has ends with 5."""
    code, _, err = shared.run("batch", "show", uuid4(), "--json")
    assert code == 5
    assert json.loads(err)["error"]["code"] == "not_found"


def test_130_after_ctrl_c(shared: Place) -> None:
    """Ctrl-C ends a command that waits with 130 and no trace; what it waited for goes on."""
    batch = submit(shared, 1)
    watching = shared.start("batch", "watch", batch, "--json")
    assert watching.line()["state"] == "sealed"
    watching.tell(signal.SIGINT)
    _, err = watching.popen.communicate(timeout=20)
    assert watching.popen.returncode == 130
    assert json.loads(err)["error"]["code"] == "interrupted"
    assert shared.json("batch", "show", batch)["state"] == "sealed"


def submit(place: Place, count: int) -> UUID:
    """Submit a batch that nobody works on and return its id."""

    async def submit_to(app: App) -> UUID:
        task = app.task(name="double", queue="nobody")(lambda number: None)
        return (await app.submit(task, range(count))).id

    return place.ask(submit_to)


def test_a_reader_that_leaves_is_no_error(shared: Place) -> None:
    """`headrace batch results ID | head -1` ends silently, however much was left to say."""
    batch = submit(shared, 3_000)
    shared.json("batch", "cancel", batch)
    process = shared.start("batch", "results", batch)
    assert process.line()["status"] == "cancelled"
    assert process.popen.stdout is not None
    process.popen.stdout.close()
    assert process.popen.stderr is not None
    assert process.popen.stderr.read() == ""
    assert process.popen.wait(20) == 0


# Migrations and the embedded default


def test_migrations_are_listed_then_applied(tmp_path: Path) -> None:
    """Before them a worker says what to do; --dry-run changes nothing; a second run has nothing to do."""
    with place(tmp_path, migrated=False) as made:
        code, _, err = made.run("worker", "jobs:app")
        assert code == 1
        assert "headrace migrate" in err
        checks = json.loads(made.run("doctor", "--json")[1])["checks"]
        assert [check["fix"] for check in checks if check["status"] == "fail"] == ["headrace migrate"]
        pending = made.json("migrate", "--dry-run")["pending"]
        assert pending
        assert made.json("migrate")["applied"] == pending
        assert asyncio.run(migrate(made.settings)) == []


def test_without_configuration_an_embedded_postgresql_is_used() -> None:
    """With no setting at all the doctor finds a durable PostgreSQL in ./.headrace, and an old one of another major
    version is refused with 2 and the fix."""
    with tempfile.TemporaryDirectory(prefix="headrace-cli-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the server runs as `nobody`, who must be able to reach its data.
        folder.chmod(0o755)
        made = Place(folder, "", "headrace")
        try:
            checks = {check["check"]: check for check in made.json("doctor")["checks"]}
            assert checks["durability"]["status"] == "ok"
            assert str(folder / ".headrace") in checks["address"]["message"]
            assert checks["hints"]["status"] == "ok"
        finally:
            end_server(folder / ".headrace" / "postgres")
        (folder / ".headrace" / "postgres" / "data" / "PG_VERSION").write_text("9.6\n")
        code, _, err = made.run("workers", "--json")
        assert (code, json.loads(err)["error"]["code"]) == (2, "other_major_version")


def end_server(home: Path) -> None:
    """Stop the embedded server and see that it is gone."""
    state = read_state(home)
    assert state is not None
    state.supervisor.send(signal.SIGTERM)
    wait_until_sync(lambda: not state.supervisor.is_alive())


# A worker and its signals


def test_sigterm_lets_jobs_finish_and_releases_the_rest(alone: Place, tmp_path: Path) -> None:
    """After SIGTERM nothing is claimed, what ends within the grace is recorded, the rest is given back uncharged."""
    worker = alone.worker("--grace", "1500ms")
    gate, never = tmp_path / "gate", tmp_path / "never"
    short, long, thread = (
        alone.enqueue("until", str(gate)), alone.enqueue("until", str(never)), alone.enqueue("hold", str(never)),
    )  # fmt: skip
    for job in (short, long, thread):
        alone.until_state(job, "running")
    worker.tell(signal.SIGTERM)
    worker.until_logged("stopping")
    later = alone.enqueue("double", 1)
    gate.touch()
    alone.until_state(short, "succeeded")
    assert worker.end() == 0, "the handler that holds a thread does not hold the process"
    assert alone.state(later) == "ready", "a worker that stops claims nothing"
    for job in (long, thread):
        view = alone.view(job)
        assert (view.state, view.failures, view.crashes, view.attempt) == ("ready", 0, 0, 1)
    assert alone.live_workers() == [], "the session was closed"


@pytest.mark.parametrize(("task", "first", "second"), [("until", signal.SIGTERM, signal.SIGTERM),
                                                       ("block", signal.SIGINT, signal.SIGTERM)])  # fmt: skip
def test_a_second_signal_ends_a_worker_at_once(
    alone: Place, tmp_path: Path, task: str, first: signal.Signals, second: signal.Signals
) -> None:
    """The second signal ends the process whatever its handlers do, even one that blocks the event loop."""
    worker = alone.worker("--grace", "1h")
    job = alone.enqueue(task, str(tmp_path / "never"))
    alone.until_state(job, "running")
    worker.tell(first)
    if task == "until":
        worker.until_logged("stopping")
    # A blocked loop cannot log: the first signal is known to have arrived when it is no longer pending.
    wait_until_sync(lambda: not pending_signals(worker))
    worker.tell(second)
    assert worker.end() == 130


def pending_signals(process: Process) -> bool:
    """Whether a signal waits to be delivered to a process."""
    status = Path(f"/proc/{process.popen.pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    return any(int(lines[name], 16) for name in ("SigPnd", "ShdPnd"))


def test_ctrl_c_stops_a_worker_in_order(alone: Place) -> None:
    """One Ctrl-C is a graceful stop, and 130 all the same."""
    worker = alone.worker()
    worker.tell(signal.SIGINT)
    assert worker.line()["event"] == "stopped"
    assert worker.end() == 130


def test_dev_shows_what_happens_to_each_job(alone: Place) -> None:
    """`headrace dev` logs start and end of every job with its duration."""
    dev = alone.start("dev", "jobs.py")
    dev.until_logged("working on default")
    job = alone.enqueue("double", 4)
    dev.until_logged(f"double {job} started")
    dev.until_logged(f"double {job} succeeded in ")
    dev.tell(signal.SIGTERM)
    assert dev.end() == 0


# The supervisor


def children(process: Process) -> list[psutil.Process]:
    """Return the worker processes of a supervisor."""
    return [child for child in psutil.Process(process.popen.pid).children() if child.status() != psutil.STATUS_ZOMBIE]


def two_workers(place: Place) -> Process:
    """Start two workers under a supervisor and return it once both work."""
    supervisor = place.start("worker", "jobs:app", "--processes", "2", "--json", "--grace", "500ms")
    assert [supervisor.line()["event"] for _ in range(2)] == ["started", "started"]
    return supervisor


def test_a_dead_process_is_replaced_and_its_job_runs_elsewhere(alone: Place, tmp_path: Path) -> None:
    """kill -9 of one of two processes: another takes its place, and its job runs on, charged with a crash only."""
    supervisor = two_workers(alone)
    gate = tmp_path / "gate"
    job = alone.enqueue("until", str(gate))
    alone.until_state(job, "running")
    [owner] = [session.process.pid for session in alone.live_workers() if session.running == 1]
    os.kill(owner, signal.SIGKILL)
    assert supervisor.line()["event"] == "started"
    pids = {child.pid for child in children(supervisor)}
    assert (len(pids), owner in pids) == (2, False)
    gate.touch()
    alone.until_state(job, "succeeded")
    view = alone.view(job)
    assert (view.attempt, view.crashes, view.failures) == (2, 1, 0)
    supervisor.tell(signal.SIGTERM)
    assert supervisor.end() == 0
    assert alone.live_workers() == []


def test_processes_end_with_their_supervisor(alone: Place, tmp_path: Path) -> None:
    """kill -9 of the supervisor: its processes notice, stop in order and give their jobs back uncharged."""
    supervisor = two_workers(alone)
    job = alone.enqueue("until", str(tmp_path / "never"))
    alone.until_state(job, "running")
    workers = children(supervisor)
    supervisor.tell(signal.SIGKILL)
    psutil.wait_procs(workers, timeout=20)
    assert [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE] == []
    view = alone.view(job)
    assert (view.state, view.crashes) == ("ready", 0)


def test_two_signals_end_a_supervisor_and_its_processes_at_once(alone: Place, tmp_path: Path) -> None:
    """Ctrl-C twice ends everything without waiting for any job."""
    supervisor = two_workers(alone)
    job = alone.enqueue("until", str(tmp_path / "never"))
    alone.until_state(job, "running")
    workers = children(supervisor)
    supervisor.tell(signal.SIGINT)
    supervisor.until_logged("stopping 2 processes")
    supervisor.tell(signal.SIGINT)
    assert supervisor.end() == 130
    psutil.wait_procs(workers, timeout=20)
    assert [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE] == []


def test_a_supervisor_gives_up_what_no_start_can_mend(shared: Place) -> None:
    """An app that cannot be imported ends the supervisor with 2 instead of starting it again and again."""
    code, _, err = shared.run("worker", "no_such_module:app", "--processes", "2")
    assert code == 2
    assert "no module 'no_such_module'" in err
    assert "Traceback" not in err


# Streams


def test_a_batch_is_watched_and_read_while_it_runs(alone: Place, tmp_path: Path) -> None:
    """`watch` and `results --follow` of other processes see items as they end, and end with the batch."""
    gate = tmp_path / "gate"

    async def submit_gated(app: App) -> UUID:
        task = app.task(name="until")(lambda path: None)
        (tmp_path / "open").touch()
        return (await app.submit(task, [str(tmp_path / "open"), str(gate)])).id

    batch = alone.ask(submit_gated)
    watching = alone.start("batch", "watch", batch, "--json")
    reading = alone.start("batch", "results", batch, "--follow")
    assert watching.line()["progress"]["done"] == 0
    alone.worker()
    first = reading.line()
    assert (first["index"], first["result"]) == (0, "done")
    gate.touch()
    assert reading.line()["index"] == 1
    lines = [json.loads(line) for line in watching.popen.communicate(timeout=20)[0].splitlines()]
    assert (lines[-1]["outcome"], lines[-1]["progress"]["succeeded"]) == ("succeeded", 2)
    assert (watching.popen.returncode, reading.end()) == (0, 0)


def test_a_terminal_gets_a_live_line_and_colour(shared: Place) -> None:
    """On a terminal `watch` draws a bar and ends with the outcome in its colour."""
    batch = submit(shared, 2)
    shared.json("batch", "cancel", batch)
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "headrace", "batch", "watch", str(batch)]
    environment = {**shared.environment, "TERM": "xterm"}
    watching = subprocess.Popen(command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    assert watching.wait(30) == 1
    shown = os.read(screen, 65_536).decode()
    os.close(screen)
    assert "2/2, 100 %" in shown
    assert "\x1b[33mcancelled\x1b[0m" in shown


def test_help_is_quick(shared: Place) -> None:
    """`headrace --help` costs at most four times the processor time of the libraries that any command line needs.

    In turns, so that both see one machine: 0.3 s on one may be 0.2 or 0.5 s on another.
    """
    turns = [(seconds_of([sys.executable, "-c", LIBRARIES]), seconds_of_help(shared)) for _ in range(6)]
    # What disturbs a turn makes it longer.
    least, helps = (min(seconds) for seconds in zip(*turns, strict=True))
    assert helps < 4 * least, turns


def seconds_of_help(place: Place) -> float:
    """Return the processor time of `headrace --help`."""
    return _seconds(place.start("--help").popen)


def seconds_of(command: list[str]) -> float:
    """Return the processor time of a command."""
    return _seconds(subprocess.Popen(command))


def _seconds(process: subprocess.Popen[Any]) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime
