"""Write what flows come to beside what they are started with: `python -m tests.flows.make_golden NAME…`.

What is written is only what they come to today: read it, and ask of each node whether it has to be so.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from headrace import App
from headrace.apps.flows.tasks import register
from headrace.model.run import Level
from headrace.settings import load_settings
from headrace.testing.provider import Answers, ScriptedProvider
from tests.flows import goldens


def written(golden: dict[str, Any]) -> str:
    """Return the text of a golden file: a line for each node."""
    lines = [f"{json.dumps(key)}: {_value(key, value)}" for key, value in golden.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(key: str, value: Any) -> str:
    if key != "nodes":
        return json.dumps(value, ensure_ascii=False)
    nodes = [
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(one, ensure_ascii=False)}"
        for name, one in value.items()
    ]
    return "{\n" + ",\n".join(nodes) + "\n}"


async def make(names: list[str], folder: Path) -> None:
    """Run flows on a store in memory and write what they come to."""
    with goldens.surroundings(folder) as (web, environ):
        async with ScriptedProvider(rules=Answers.load(folder / "answers.json")) as provider:
            environ = {"HEADRACE_URL": "memory://", **environ, **provider.environment}
            app = App(settings=load_settings(environ=environ, file=folder / "none.toml"))
            register(app)
            app.works_runs = True
            async with app.worker():
                for name in names:
                    await _make_one(app, goldens.load(name), web.target)


async def _make_one(app: App, golden: goldens.Golden, web: str) -> None:
    run = await goldens.start(app, golden, Level.WORKFLOW, web=web)
    await goldens.ended(run, 30)
    golden.path.write_text(written({**golden.given, **await goldens.outcome(app, run, golden, web=web)}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(make(sys.argv[1:] or goldens.names(), Path(place)))
