"""Memory of an idle worker process on PostgreSQL, and of the imports it consists of.

    python benchmarks/idle_memory.py [--seconds 5] [--jobs 0]

It starts a PostgreSQL server of its own, a worker of an app with one task, lets it run so many jobs and then idle, and
prints the resident set
(RSS, with the libraries it shares with others) and the private part (PSS counts shared pages by share; USS counts what
would be freed if the process ended). Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headrace import App
from headrace.settings import load_settings
from tests.backends.server import PostgresServer
from tests.waiting import wait_until_sync

APP = """
from headrace import App
app = App()
@app.task
async def double(number: int) -> int:
    return 2 * number
"""
#: What a worker consists of, each with all before it.
IMPORTS = [
    "pass",
    "import asyncio",
    "import headrace",
    "import headrace.wiring",
    "import click",
    "import headrace.cli.worker",
    "import asyncpg",
    "import headrace.stores.postgres.stores",
    "import pydantic",
]


def memory_of(pid: int) -> dict[str, int]:
    """Return the memory of a process in KiB: rss, pss and uss."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    fields = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {
        "rss": fields["Rss"],
        "pss": fields["Pss"],
        "uss": fields["Private_Clean"] + fields["Private_Dirty"],
    }


async def run_jobs(dsn: str, count: int) -> None:
    """Have the worker run so many jobs."""
    app = App(settings=load_settings(environ={"HEADRACE_URL": dsn, "HEADRACE_QUEUE_SCHEMA": "idle"}))
    task = app.task(name="double")(lambda number: 2 * number)
    async with app:
        await (await app.submit(task, list(range(count)))).wait()


def measure_worker(server: PostgresServer, folder: Path, *, seconds: float, jobs: int) -> dict[str, int]:
    """Start a worker, let it run jobs and then idle for some time, and return its memory."""
    (folder / "idle.py").write_text(APP)
    environ = {**os.environ, "HEADRACE_URL": server.dsn, "HEADRACE_QUEUE_SCHEMA": "idle"}
    subprocess.run([sys.executable, "-m", "headrace", "migrate"], env=environ, check=True, capture_output=True)
    output = folder / "output"
    with output.open("wb") as file:
        worker = subprocess.Popen(
            [sys.executable, "-m", "headrace", "worker", "idle:app", "--json"], cwd=folder, env=environ,
            stdout=file, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        wait_until_sync(lambda: "started" in output.read_text(), message="the worker to start")
        if jobs:
            asyncio.run(run_jobs(server.dsn, jobs))
        try:
            worker.wait(seconds)
        except subprocess.TimeoutExpired:
            return memory_of(worker.pid)
        raise RuntimeError(f"the worker ended: {worker.returncode}")
    finally:
        worker.kill()
        worker.wait()


def measure_imports() -> list[tuple[str, int]]:
    """Return the RSS in KiB after each import, in a process of its own."""
    code = textwrap.dedent("""
        import json, sys
        from pathlib import Path
        said = []
        for line in json.loads(sys.argv[1]):
            exec(line)
            said.append((line, int(Path("/proc/self/statm").read_text().split()[1]) * 4))
        print(json.dumps(said))
    """)
    output = subprocess.run(
        [sys.executable, "-c", code, json.dumps(IMPORTS)], check=True, capture_output=True, text=True
    ).stdout
    return [(line, size) for line, size in json.loads(output)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the worker idles")
    parser.add_argument("--jobs", type=int, default=0, help="how many jobs it runs before")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory() as folder:
            worker = measure_worker(server, Path(folder), seconds=options.seconds, jobs=options.jobs)
    finally:
        server.remove()
    imports = measure_imports()
    if options.json:
        print(json.dumps({"worker": worker, "imports": dict(imports)}))
        return
    print("idle worker: " + ", ".join(f"{name} {size / 1024:.1f} MiB" for name, size in worker.items()))
    before = 0
    for line, size in imports:
        print(f"  {line:45} {size / 1024:6.1f} MiB  (+{(size - before) / 1024:.1f})")
        before = size


if __name__ == "__main__":
    main()
