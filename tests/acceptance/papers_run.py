"""Running `headrace papers extract` as people do: a process of its own, a provider that outlives it, and kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import wait_until_sync

TEMPLATE = """\
name: numbers
version: 1
fields:
  - {name: sample, type: integer, description: How many plots were studied}
  - {name: place, type: text, description: Where the study was done}
"""


@dataclass(frozen=True)
class Place:
    """A folder with documents and a template, and the provider the command asks."""

    root: Path
    provider: dict[str, Any]
    log: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the command."""
        return {
            **os.environ,
            "HEADRACE_LLM_MODEL": self.provider["model"],
            "HEADRACE_LLM_BASE_URL": self.provider["base_url"],
            "HEADRACE_LLM_API_KEY": self.provider["api_key"],
        }

    def calls(self) -> Counter[str]:
        """How often each content was asked, as the provider saw it."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        events = [json.loads(line) for line in lines]
        return Counter(event["key"] for event in events if event["event"] == "received")

    def answered(self) -> int:
        """How many calls have got their whole answer."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return sum(json.loads(line)["event"] == "answered" for line in lines)

    def start(self, *options: str, folder: str = "documents", stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start the command."""
        command = [sys.executable, "-m", "headrace", "papers", "extract", folder, "--template", "template.yaml"]
        return subprocess.Popen(
            [*command, "--out", "out", *options],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def extract(self, *options: str, folder: str = "documents") -> dict[str, Any]:
        """Run the command to its end and return its summary."""
        process = self.start("--json", *options, folder=folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        summary: dict[str, Any] = json.loads(out)
        return summary

    def rows(self) -> list[dict[str, Any]]:
        """The lines of the JSONL result."""
        text = (self.root / "out" / "results.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def record(self) -> dict[str, Any]:
        """The record of the run."""
        record: dict[str, Any] = json.loads((self.root / "out" / "run.json").read_text(encoding="utf-8"))
        return record

    def processes(self) -> list[psutil.Process]:
        """Every process that belongs here: commands, the supervisor, the database and all its backends."""
        ours = [process for process in psutil.process_iter() if self._is_ours(process)]
        family = {child for process in ours for child in _children(process)}
        return list(family.union(ours) - {psutil.Process()})

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return str(self.root) in " ".join(process.cmdline()) or process.cwd().startswith(str(self.root))
        except psutil.Error:
            return False

    def kill_everything(self) -> None:
        """SIGKILL every process at once, without a goodbye."""
        doomed = self.processes()
        for process in doomed:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        wait_until_sync(lambda: not self.processes(), timedelta(seconds=30))


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@contextmanager
def place(documents: int, *, latency: str = "0") -> Iterator[Place]:
    """Make a place with that many short documents and a provider in a process of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="headrace-papers-", ignore_cleanup_errors=True) as name,
        tempfile.TemporaryDirectory(prefix="headrace-provider-") as provider_name,
    ):
        root = Path(name).resolve()
        root.chmod(0o755)
        write_documents(root / "documents", range(documents))
        (root / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
        # Elsewhere: what names `root` is killed, and the provider outlives the command.
        log = Path(provider_name) / "calls.jsonl"
        provider = subprocess.Popen(
            [sys.executable, "-m", "headrace.testing.provider", "--log", str(log), "--latency", latency],
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        assert provider.stdout is not None
        made = Place(root, json.loads(provider.stdout.readline()), log)
        try:
            yield made
        finally:
            provider.terminate()
            provider.communicate()
            made.kill_everything()


def write_documents(folder: Path, numbers: range) -> None:
    """Write short documents that differ."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        text = f"We studied {number + 10} plots. The study was done in valley {number}. It rained often."
        (folder / f"paper-{number:03}.txt").write_text(text, encoding="utf-8")
