"""Take the pictures of docs/pictures in a real browser, of a dashboard that shows real work.

usage: python -m tools.make_pictures      (needs Chromium; it starts an embedded PostgreSQL, a worker and a service)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from tests.acceptance.dashboard_walk import settle
from tests.unit.browser import browser, installed

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WORLD = Path(__file__).with_name("picture_world.py")


def main() -> None:
    """Take them all."""
    program = installed()
    if program is None:
        sys.exit("this machine has no browser: install chromium")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "headrace", "serve", f"{WORLD}:app", "--worker", "--port", "0", "--json"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            with httpx2.Client(base_url=url, timeout=60) as client:
                shown = bring(client)
            take(url, shown, program, Path(folder) / "browser")
        finally:
            process.terminate()
            process.wait(60)


def bring(client: httpx2.Client) -> dict[str, str]:
    """Bring work, and return the pages that show it, by the names of their pictures."""

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(f"/api/v1/{path}", json=body)
        answer.raise_for_status()
        made: dict[str, Any] = answer.json()
        return made

    towns = post("batches", {"task": "describe", "items": [f"Town {number}" for number in range(1, 601)]})["batch"]
    post("batches", {"task": "send", "items": [f"reader{number}@example.org" for number in range(200)]})
    run = post("runs", {"workflow": "order", "input": {"item": "mill wheel", "count": 2}})["run"]
    late = post("jobs", {"task": "send", "args": ["later@example.org"], "delay": "2h"})["job"]
    return {
        "overview": "/", "batch": f"/batches/{towns}", "job": f"/jobs/{late}", "run": f"/runs/{run}",
        "dead-letters": "/dead-letters",
    }  # fmt: skip


def take(url: str, shown: dict[str, str], program: str, folder: Path) -> None:
    """Open each page and write what it looks like."""
    with browser(program, folder) as tab:
        tab.size(1280, 800)
        for name, path in shown.items():
            tab.visit(url + path)
            settle(tab, 4)
            tab.picture(PICTURES / f"{name}.png")
            print(f"{name}: {path}")


if __name__ == "__main__":
    main()
