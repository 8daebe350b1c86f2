"""What an update of a live batch of 10,000 items costs: looking on the server, and drawing in an open page."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

import httpx2

from headrace import App
from headrace.dashboard.memory import Memory
from headrace.dashboard.page import Look, View
from headrace.dashboard.pages.batches import PAGES
from headrace.dashboard.rendering import render_parts
from headrace.model.ranks import percentile
from headrace.settings import load_settings
from tests.unit.browser import Tab

ITEMS, SECONDS = 10_000, 60.0
#: Seconds that an item takes, ten at once, and seconds between two looks.
TAKES, PAUSE = 0.01, 0.1
#: Counts milliseconds of what the page does with each change of the grid, and with each live part.
_WATCH = """(() => {
  window.spent = {grid: [], parts: []};
  const timed = (name, work) => (...given) => {
    const began = performance.now();
    const answer = work(...given);
    spent[name].push(performance.now() - began);
    return answer;
  };
  const grid = document.getElementById("grid");
  grid.dispatchEvent = timed("grid", grid.dispatchEvent.bind(grid));
  window.show = timed("parts", show);
})()"""


def measure_grid(tab: Tab, base: str, dsn: str) -> dict[str, Any]:
    """Let a batch run while its page is open, and look at it as the service does; return milliseconds of each part."""
    with httpx2.Client(base_url=base, timeout=60) as client:
        body = {"task": "wait", "items": [TAKES] * ITEMS}
        batch = client.post("/api/v1/batches", json=body).raise_for_status().json()["batch"]
    tab.size(1280, 900)
    tab.visit(f"{base}/batches/{batch}")
    tab.ask(_WATCH)
    looks = asyncio.run(_looks(dsn, batch))
    tab.wait_for("document.querySelector('h1 .s-succeeded') !== null", SECONDS)
    spent = tab.ask("spent")
    return {"look": _told(looks), "grid": _told(spent["grid"]), "parts": _told(spent["parts"])}


async def _looks(dsn: str, batch: str) -> list[float]:
    """Look at a batch until it has ended, each time as one who remembers nothing; return how long each look took."""
    page, found = next(page for page in PAGES if page.name == "batch"), list[float]()
    async with App(settings=load_settings(environ={**os.environ, "HEADRACE_URL": dsn})) as app:
        while True:
            view = View(app, Look(), {"batch_id": batch}, memory=Memory(), live=True)
            began = time.perf_counter()
            context = await page.make(view)
            render_parts(page, view, context)
            found.append((time.perf_counter() - began) * 1000)
            if context["over"]:
                return found
            await asyncio.sleep(PAUSE)


def _told(times: Sequence[float]) -> dict[str, Any]:
    found = {"median": percentile(times, 0.5), "p95": percentile(times, 0.95), "worst": max(times)}
    return {name: round(each, 2) for name, each in found.items()} | {"of": len(times)}
