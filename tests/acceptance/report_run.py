"""Running `headrace report` as people do: processes of their own, a provider that outlives them, and kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.testing.provider import ProviderProcess
from tests.acceptance import papers_run
from tests.acceptance.report_workbooks import answers
from tests.waiting import wait_until_sync

FAULTS = Path(__file__).parent / "report_faults"
#: How long a command may take, on a machine that does other things, too.
PATIENCE_SECONDS = 240
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9/v1"
FILES = ("report.html", "report.json", "report.xlsx")


@dataclass(frozen=True)
class Place(papers_run.Place):
    """A folder, the store below it, and the provider that commands ask."""

    outside: Path
    #: Of every command: changed by tests to take the model away, and to hold tasks.
    changes: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the command."""
        paths = [str(FAULTS), os.environ.get("PYTHONPATH", "")]
        return {
            **super().environment,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path), "REPORT_MARKS": str(self.marks),
            **self.changes,
        }  # fmt: skip

    @property
    def marks(self) -> Path:
        """Where tasks that are held leave marks."""
        return self.outside / "marks"

    def begin(self, *arguments: object, faults: str = "") -> subprocess.Popen[str]:
        """Start `headrace report …`."""
        return subprocess.Popen(
            [sys.executable, "-m", "headrace", "report", *map(str, arguments)], cwd=self.root, text=True,
            env={**self.environment, "REPORT_FAULTS": faults}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: object, faults: str = "") -> tuple[int, str, str]:
        """Run `headrace report …` to its end; return its exit code, output and errors."""
        process = self.begin(*arguments, faults=faults)
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
        return process.returncode, out, err

    def report(self, *arguments: object, faults: str = "", code: int = 0) -> dict[str, Any]:
        """Run a command with --json and return its document."""
        ended, out, err = self.run(*arguments, "--json", faults=faults)
        assert ended == code, (ended, out, err)
        summary: dict[str, Any] = json.loads(out)
        return summary

    def killed(self, *arguments: object, faults: str, held: str, marks: int) -> None:
        """Start a command, and SIGKILL every process once so many calls of a task are held."""
        for mark in self.marks.iterdir():
            mark.unlink()
        process = self.begin(*arguments, faults=faults)
        try:
            wait_until_sync(
                lambda: len(list(self.marks.glob(f"{held}.*"))) >= marks or process.poll() is not None,
                timedelta(seconds=90), message=f"{held} to be held",
            )  # fmt: skip
            assert process.poll() is None, process.communicate()
        finally:
            self.kill_everything()
            process.communicate()

    def document(self, out: str) -> dict[str, Any]:
        """What report.json says."""
        told: dict[str, Any] = json.loads((self.root / out / "report.json").read_text(encoding="utf-8"))
        return told

    def without_run(self, out: str) -> dict[str, Any]:
        """What report.json says of everything but how it was made."""
        return {name: value for name, value in self.document(out).items() if name != "run"}

    def ask_model_at(self, url: str) -> None:
        """Let the commands that follow ask the model at another address."""
        self.changes["HEADRACE_LLM_BASE_URL"] = url


@contextmanager
def place(*options: str, rules: Mapping[str, Any] | None = None) -> Iterator[Place]:
    """Make a place, with a provider in a process of its own: `options` are its, `rules` its answers."""
    with (
        tempfile.TemporaryDirectory(prefix="headrace-report-", ignore_cleanup_errors=True) as name,
        tempfile.TemporaryDirectory(prefix="headrace-provider-") as other,
    ):
        # The provider and the marks lie elsewhere: what names `root` is killed, and they outlive the command.
        root, outside = Path(name).resolve(), Path(other)
        root.chmod(0o755)
        (outside / "marks").mkdir()
        (outside / "answers.json").write_text(json.dumps(answers() if rules is None else rules), encoding="utf-8")
        log = outside / "calls.jsonl"
        with ProviderProcess("--log", str(log), "--answers", str(outside / "answers.json"), *options) as provider:
            told = {"model": provider.settings.model, "base_url": provider.base_url, "api_key": "scripted-key"}
            made = Place(root, told, log, outside)
            try:
                yield made
            finally:
                made.kill_everything()
