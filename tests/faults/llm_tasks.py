"""The app of workers that call a model: every job one call, every third one two, the second of which is the same for
four jobs."""

from __future__ import annotations

import os

from headrace import App, Backoff, Task

#: Whatever is killed how often: a job gives up after none of it.
PATIENT = Backoff.exponential(max_attempts=100, base="50ms", cap="1s")


def make(app: App) -> tuple[App, Task[[int], list[str]]]:
    """Give an app its task: each run of a test has an app of its own, which keeps nothing of another's store."""

    @app.task(name="ask", queue="llm", retry=PATIENT, timeout="120s")
    async def ask(number: int) -> list[str]:
        """Ask what this item wants to know."""
        answers = [await app.llm.complete(question(number), max_tokens=40)]
        if number % 3 == 0:
            answers.append(await app.llm.complete(question(-(number // 12)), max_tokens=40))
        return answers

    return app, ask


def question(number: int) -> str:
    """Return what is asked for an item."""
    return f"put this into capitals: item {number} of the list"


def wanted(number: int) -> list[str]:
    """Return what the job of an item must end with."""
    asked = [number] + ([-(number // 12)] if number % 3 == 0 else [])
    return [question(one).upper() for one in asked]


app, _ = make(App(os.environ.get("HEADRACE_URL")))
