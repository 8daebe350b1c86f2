"""What the files of `deploy/` start works: the same commands, settings and variables, as processes of this machine.

Commands and names of variables are taken out of the files; in place of other machines stand servers of the test.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.acceptance.command_runs import Process
from tests.backends.kafka import shared_broker
from tests.backends.valkey import ValkeyServer, binary, free_port
from tests.integration.own_databases import own_database
from tests.unit.deploy_files import DEPLOY, KUBERNETES, SYSTEMD, compose, documents, example_environment, pods, unit
from tests.waiting import wait_until_sync

#: How each platform names what it starts.
ROLES = ("migrate", "service", "worker", "relay")
APP = "shop:app"
SHOP = '''
import asyncio
from pathlib import Path
from headrace import App

app = App()

@app.task
async def pack(started: str, let_go: str) -> str:
    """Say that it runs, and go on until a file is there."""
    Path(started).touch()
    while not Path(let_go).exists():
        await asyncio.sleep(0.02)
    return "packed"
'''
#: The time that a busy machine may take for a process to start or end.
PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Platform:
    """What one way to deploy starts: its commands as written, the names of its variables, and its settings."""

    commands: Mapping[str, list[str]]
    variables: frozenset[str]
    settings: Path


def by_compose() -> Platform:
    """What the containers of the compose file run."""
    filled = {name: value or "s3cret" for name, value in example_environment().items()} | {"APP": "$(APP)"}
    services = compose(filled)["services"]
    given = services["worker"]["environment"]
    variables = frozenset(name for name, value in given.items() if value is not None)
    return Platform({role: services[role]["command"] for role in ROLES}, variables, DEPLOY / "headrace.toml")


def by_kubernetes() -> Platform:
    """What the pods run; what the secret has is told in docs/howto/deploy.md."""
    containers = {
        name.removeprefix("headrace-"): pod["containers"][0] for name, pod in pods(KUBERNETES / "base").items()
    }
    variables = {one["name"] for container in containers.values() for one in container["env"]}
    secret = {"HEADRACE_URL", "HEADRACE_LIMITS_URL", "HEADRACE_EVENTS_KAFKA_SERVERS"}
    image = {"HEADRACE_DIRECTORY"}
    commands = {role: containers[role]["command"] for role in ROLES}
    return Platform(commands, frozenset(variables - {"APP"} | secret | image), KUBERNETES / "base" / "headrace.toml")


def by_systemd() -> Platform:
    """What the units run; `%i` is the queue of a worker."""
    files = {role: f"headrace-{role}{'@' if role == 'worker' else ''}.service" for role in ROLES}
    commands = {
        role: shlex.split(unit(file)["Service.ExecStart"][0].replace("%i", "default").replace("${APP}", "$(APP)"))
        for role, file in files.items()
    }
    assert {words[0] for words in commands.values()} == {"/opt/headrace/bin/headrace"}
    own = {word.partition("=")[0] for word in unit(files["relay"])["Service.Environment"][0].split()}
    lines = (SYSTEMD / "headrace.env.example").read_text(encoding="utf-8").splitlines()
    file = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    variables = frozenset((own | file) - {"APP", "PYTHONUNBUFFERED"})
    named = {role: ["headrace", *words[1:]] for role, words in commands.items()}
    return Platform(named, variables, DEPLOY / "headrace.toml")


PLATFORMS = {"compose": by_compose, "kubernetes": by_kubernetes, "systemd": by_systemd}


@dataclass
class Machine:
    """This machine in the place of a platform."""

    platform: Platform
    folder: Path
    values: Mapping[str, str]
    port: int
    processes: list[Process] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the platform gives, with values of the test."""
        assert self.platform.variables <= set(self.values), "the test has a value for each"
        given = {name: value for name, value in self.values.items() if name in self.platform.variables}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **given, "PATH": programs, "PORT": str(self.port)}

    def words(self, role: str) -> list[str]:
        """The command of a role: only where it listens, and the app, are the test's own."""
        changed = {"headrace": None, "$(APP)": APP, "0.0.0.0": "127.0.0.1", "8400": str(self.port)}
        words = self.platform.commands[role]
        assert words[0] == "headrace"
        return [sys.executable, "-m", "headrace", *(changed.get(word) or word for word in words[1:])]

    def start(self, role: str) -> Process:
        """Start what a role runs, and return it once it says that it has started."""
        process = Process(subprocess.Popen(
            self.words(role), cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ))  # fmt: skip
        self.processes.append(process)
        assert process.line()["event"] == "started"
        return process

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            words, cwd=self.folder, env={**self.environment, **more}, capture_output=True, text=True, check=False,
            timeout=PATIENCE.total_seconds(),
        )  # fmt: skip

    def headrace(self, *words: str) -> str:
        """Run a command of Headrace that must succeed; return what it wrote."""
        done = self.run(sys.executable, "-m", "headrace", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check(self, what: str, **more: str) -> int:
        """Run the probe of the image; return its exit code."""
        return self.run("sh", str(DEPLOY / "check-process.sh"), what, **more).returncode


@asynccontextmanager
async def machine(platform: Platform, folder: Path) -> AsyncIterator[Machine]:
    """Stand in for a platform: a database, a Valkey and a Kafka for its processes, which end with the test."""
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    valkey = ValkeyServer(port=True)
    try:
        async with own_database() as url:
            values = {
                "HEADRACE_URL": url,
                "HEADRACE_LIMITS_URL": f"redis://127.0.0.1:{valkey.port}/0",
                "HEADRACE_EVENTS_KAFKA_SERVERS": shared_broker().servers,
                "HEADRACE_CONFIG": str(platform.settings),
                "HEADRACE_DIRECTORY": str(folder / "directory"),
            }
            made = Machine(platform, folder, values, free_port())
            try:
                yield made
            finally:
                for process in made.processes:
                    process.kill()
    finally:
        valkey.remove()


def settle_in(here: Machine) -> httpx2.Client:
    """Migrate, as the first step of every platform; return a client with a token that was made then."""
    done = here.run(*here.words("migrate"))
    assert done.returncode == 0, done.stderr
    assert "applied: " in done.stdout
    scopes = [word for scope in ("read", "submit", "operate") for word in ("--scope", scope)]
    token = here.headrace("token", "create", "operator", *scopes).strip()
    return httpx2.Client(base_url=f"http://127.0.0.1:{here.port}", headers={"authorization": f"Bearer {token}"})


def submit(client: httpx2.Client, here: Machine, name: str) -> str:
    """Send a job over HTTP and return its id."""
    args = [str(here.folder / f"{name}.started"), str(here.folder / f"{name}.go")]
    answer = client.post("/api/v1/jobs", json={"task": "pack", "args": args})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job"])


def state(client: httpx2.Client, job: str) -> str:
    """Return where a job stands."""
    answer: dict[str, Any] = client.get(f"/api/v1/jobs/{job}").json()
    return str(answer["state"])


@pytest.mark.parametrize(
    "name", ["compose", *(pytest.param(one, marks=pytest.mark.slow) for one in list(PLATFORMS)[1:])]
)
async def test_what_is_deployed_works_and_drains(name: str, tmp_path: Path) -> None:
    """Migrate, serve, work, relay: probes pass, a job runs, an event leaves; who is told to stop ends its job first."""
    async with machine(PLATFORMS[name](), tmp_path) as here:
        await asyncio.to_thread(work_and_drain, here)


def work_and_drain(here: Machine) -> None:
    """Start everything, work, and stop it again."""
    with settle_in(here) as client:
        service, relay, worker = here.start("service"), here.start("relay"), here.start("worker")
        probes(here, client)
        job = submit(client, here, "first")
        wait_until_sync((here.folder / "first.started").exists, PATIENCE)
        worker.tell(signal.SIGTERM)
        worker.until_logged("stopping: running jobs may end within 30s")
        later = submit(client, here, "later")
        (here.folder / "first.go").touch()
        assert worker.end() == 0
        assert (state(client, job), state(client, later)) == ("succeeded", "ready"), "it claimed nothing more"
        here.headrace("events", "emit", "Shop.Order.Packed", "{}", "--aggregate-id", "o-1")
        wait_until_sync(lambda: client.get("/api/v1/events/outbox").json()["waiting"] == 0, PATIENCE)
        assert here.check("worker-alive") == 1, "its session has ended"
        for process in (relay, service):
            process.tell(signal.SIGTERM)
            assert process.end() == 0


def probes(here: Machine, client: httpx2.Client) -> None:
    """Ask what probes ask, and Prometheus; strangers see nothing but probes."""
    url = f"http://127.0.0.1:{here.port}"
    assert [httpx2.get(f"{url}{path}").status_code for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 401]
    assert "\nheadrace_workers 1\n" in client.get("/metrics").text
    assert [here.check(what) for what in ("service", "worker", "store")] == [0, 0, 0]
    assert wanted(client) >= 1


def wanted(client: httpx2.Client) -> int:
    """Ask what KEDA asks, of the queue of this app, and look where KEDA looks."""
    scaled = [one for one in documents(KUBERNETES / "keda" / "scaled-by-api.yaml") if one["kind"] == "ScaledObject"]
    asks = scaled[0]["spec"]["triggers"][0]["metadata"]
    path, _, queue = asks["url"].partition("headrace.headrace")[2].partition("?queue=")
    assert queue
    found = client.get(path, params={"queue": "default"}).json()
    for step in asks["valueLocation"].split("."):
        found = found[int(step) if step.isdigit() else step]
    return int(found)


def test_probes_blame_nobody_for_a_store_that_is_away(tmp_path: Path) -> None:
    """A worker that waits for its store is not ended; but nothing is ready, and a service that is gone is found."""
    platform = by_compose()
    values = dict.fromkeys(platform.variables, "") | {
        "HEADRACE_CONFIG": str(platform.settings), "HEADRACE_EVENTS_KAFKA_SERVERS": "127.0.0.1:9",
        "HEADRACE_URL": f"postgresql://headrace:none@127.0.0.1:{free_port()}/headrace",
    }  # fmt: skip
    here = Machine(platform, tmp_path, values, free_port())
    found = {what: here.check(what) for what in ("service", "worker", "worker-alive", "store", "nothing")}
    assert found == {"service": 1, "worker": 1, "worker-alive": 0, "store": 1, "nothing": 1}


def test_platforms_start_the_same() -> None:
    """Service, relay and migration alike everywhere; of workers only what they work differs."""
    compose, kubernetes, systemd = (make() for make in PLATFORMS.values())
    assert compose.commands["migrate"] == kubernetes.commands["migrate"] == systemd.commands["migrate"]
    assert compose.commands["relay"] == kubernetes.commands["relay"] == systemd.commands["relay"]
    assert compose.commands["service"] == kubernetes.commands["service"]
    assert [word for word in compose.commands["service"] if word not in ("--host", "0.0.0.0")] == (
        systemd.commands["service"]
    )
    for platform in (compose, kubernetes, systemd):
        assert platform.commands["worker"][:3] == ["headrace", "worker", "$(APP)"]
        assert platform.commands["worker"][-1] == "--json"


def test_logs_are_read_by_machines() -> None:
    """What lasts says what happens as lines of JSON."""
    lasting = [words for make in PLATFORMS.values() for role, words in make().commands.items() if role != "migrate"]
    assert json.dumps(lasting).count("--json") == len(lasting) == 9


def test_valkey_starts_as_compose_says(tmp_path: Path) -> None:
    """Its command gives it the password through its standard input, and it asks everybody for that."""
    (tmp_path / "password").write_text("s3cret")
    port = free_port()
    shell, dash, script = compose(example_environment() | {"POSTGRES_PASSWORD": "-", "VALKEY_PASSWORD": "-"})[
        "services"
    ]["valkey"]["command"]
    changed = script.replace("/run/secrets/valkey_password", str(tmp_path / "password"))
    changed = changed.replace("valkey-server -", f"{binary()} - --port {port} --bind 127.0.0.1")
    server = subprocess.Popen([shell, dash, changed], cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        answers = wait_until_sync(lambda: asked(port), PATIENCE)
        assert answers == b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n"
    finally:
        server.terminate()
    assert server.wait(30) == 0, "the shell gave its place to it, so that it hears the signal"


def asked(port: int) -> bytes:
    """Ask Valkey with and without the password; nothing while it does not listen."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"PING\r\nAUTH s3cret\r\nPING\r\nQUIT\r\n")
            return b"".join(iter(lambda: connection.recv(100), b"")).removesuffix(b"+OK\r\n")
    except OSError:
        return b""
