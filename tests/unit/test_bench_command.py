"""`headrace bench` itself, on real servers: what it counts, what it refuses, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

from headrace.cli.root import cli
from tests.backends.server import shared_server
from tests.waiting import wait_until_sync

COMMAND = [sys.executable, "-m", "headrace", "bench", "--peers", "none"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for temporary files that every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="hrbench", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose temporary files lie in `folder`."""
    return {**os.environ, "TMPDIR": str(folder)}


def by_contender(report: dict[str, Any], workload: str) -> dict[str, dict[str, Any]]:
    """Return the results of a workload."""
    return {result["contender"]: result for result in report["results"] if result["workload"] == workload}


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_run_records_every_job_done_and_leaves_nothing(folder: Path) -> None:
    """All waiting jobs are counted as recorded done on a durable server of its own, which is gone afterwards."""
    out = folder / "report.md"
    arguments = ["--quick", "--jobs", "2000", "--only", "drain,latency,scatter", "--json", "--out", str(out)]
    done = subprocess.run([*COMMAND, *arguments], env=environment(folder), capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {result["status"] for result in report["results"]} == {"ok"}
    for contender, result in by_contender(report, "drain").items():
        assert result["figures"]["done"]["median"] == 2_000, contender
        assert result["figures"]["per_second"]["median"] > 0, contender
    assert by_contender(report, "latency")["headrace"]["figures"]["jobs"]["median"] == 20
    assert by_contender(report, "scatter")["headrace"]["figures"]["seconds"]["median"] > 0
    assert (report["server"]["fsync"], report["server"]["synchronous_commit"]) == ("on", "on")
    assert not report["valid"] and any("quick" in reason for reason in report["invalid_because"])
    assert "INVALID" in out.read_text() and "| drain | headrace |" in out.read_text()
    assert [path.name for path in folder.iterdir()] == ["report.md"]


def measurements(run: int) -> list[int]:
    """Return the children of a run that measure; its servers are others."""
    found = []
    for word in Path(f"/proc/{run}/task/{run}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            if b"headrace.bench.child" in Path(f"/proc/{word}/cmdline").read_bytes():
                found.append(int(word))
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_no_server_and_no_files(folder: Path, number: signal.Signals, code: int) -> None:
    """Ended in the middle of a drain, by Ctrl-C or SIGTERM, neither server nor child nor data stay."""
    run = subprocess.Popen(
        [*COMMAND, "--only", "drain", "--jobs", "50000"], env=environment(folder), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until_sync(lambda: list(folder.glob("*/postgres/server.json")), message="the server to start")
        [described] = folder.glob("*/postgres/server.json")
        server = json.loads(described.read_text())["server"]["pid"]
        wait_until_sync(lambda: measurements(run.pid), message="a measurement to start")
        [child] = measurements(run.pid)
        run.send_signal(number)
        assert run.wait(90) == code  # longer than its own bounds for the ends of child and server together
    finally:
        run.kill()
        run.wait()
    wait_until_sync(lambda: not is_alive(server) and not is_alive(child), message="server and child to end")
    assert list(folder.iterdir()) == []


def test_a_server_that_may_lose_commits_is_refused() -> None:
    """Figures without durability are not asked for by accident: the setting and the way out are named."""
    result = CliRunner().invoke(cli, ["bench", "--peers", "none", "--url", shared_server().dsn, "--json"])
    assert result.exit_code == 2
    message = json.loads(result.stderr)["error"]["message"]
    assert "fsync = off" in message and "--allow-unsafe" in message


def test_the_url_of_all_commands_is_the_server_to_measure_on() -> None:
    """`headrace --url URL bench` does not measure on another server in silence."""
    runner = CliRunner(env={"HEADRACE_QUEUE_URL": None})  # has the option's effect on the environment undone
    result = runner.invoke(cli, ["--url", shared_server().dsn, "bench", "--peers", "none", "--json"])
    assert result.exit_code == 2
    assert "fsync = off" in json.loads(result.stderr)["error"]["message"]


def test_an_unsafe_server_is_said_in_the_report() -> None:
    """What was allowed is not hidden; and enqueueing is compared with the raw inserts of the same run."""
    options = ["--quick", "--only", "enqueue", "--peers", "none", "--json", "--allow-unsafe"]
    result = CliRunner().invoke(cli, ["bench", *options, "--url", shared_server().dsn])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert any("fsync = off" in reason for reason in report["invalid_because"])
    assert set(by_contender(report, "enqueue")["headrace"]["ratios"]) == {"many", "one"}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--only", "drian"], "drain-deep"),
        (["--only", ""], "drain-deep"),
        (["--peers", "pgq"], "pgqueuer"),
        (["--peers", "pgqueuer,nobody"], "procrastinate"),
        (["--rounds", "0"], "--rounds"),
        (["--jobs", "99"], "--jobs"),
        (["--url", "mysql://root:hush@db/x"], "postgresql://"),
        (["--redis", "localhost:6379"], "redis://"),
        (["--source", "/nowhere/src"], "the package headrace"),
        (["--out", "/nowhere/report.md"], "a folder that exists"),
    ],
)
def test_mistakes_are_refused_before_anything_starts(arguments: list[str], word: str) -> None:
    """A wrong option ends with 2, says what would be right, and shows no password."""
    result = CliRunner().invoke(cli, ["bench", *arguments, "--json"])
    assert result.exit_code == 2
    message = json.loads(result.stderr)["error"]["message"]
    assert word in message and "hush" not in message


def test_a_user_without_rights_is_told_which() -> None:
    """Exit code 4: a user who may connect but make no databases, and one whom the server does not know."""
    name = f"visitor_{uuid4().hex[:12]}"
    with psycopg.connect(shared_server().dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            for user, word in ((name, "CREATEDB"), (f"no_{name}", "Correct user")):
                url = shared_server().dsn.replace("://headrace@", f"://{user}@")
                options = ["--quick", "--only", "enqueue", "--peers", "none", "--allow-unsafe", "--url", url, "--json"]
                result = CliRunner().invoke(cli, ["bench", *options])
                assert result.exit_code == 4, result.stderr
                assert word in json.loads(result.stderr)["error"]["message"]
        finally:
            connection.execute(f"DROP ROLE {name}".encode())


def test_an_unreachable_server_ends_with_its_own_code() -> None:
    """Exit code 3, as of every command that cannot reach its store."""
    result = CliRunner().invoke(cli, ["bench", "--peers", "none", "--url", "postgresql://127.0.0.1:9/x", "--json"])
    assert result.exit_code == 3
    assert "--url" in json.loads(result.stderr)["error"]["message"]
