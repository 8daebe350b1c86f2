"""The tasks of random graphs: what they end with is a function of their arguments, and of how often they have run."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from headrace import App, Backoff, Cancel, Context, Done, Fail, Retry, Snooze

#: Tries of tasks where their node says nothing.
USUAL_TRIES = 2
#: A plan with so many failures never succeeds.
ALWAYS = 99
ERRORS: dict[str, type[Exception]] = {"ValueError": ValueError, "IndexError": IndexError, "OSError": OSError}
WORDS = ("red", "green", "blue")


def worth(given: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Return the output of a task."""
    text = json.dumps([given, plan.get("salt", 0)], sort_keys=True)
    digest = hashlib.sha256(text.encode()).digest()
    made: dict[str, Any] = {
        "n": digest[0] % 100,
        "word": WORDS[digest[1] % 3],
        "list": list(digest[2 : 2 + digest[2] % 5]),
    }
    return {**made, "pad": "é" * plan["pad"]} if "pad" in plan else made


def port_of(output: dict[str, Any], plan: dict[str, Any]) -> str:
    """Return the port by which a task leaves."""
    ports = plan.get("ports", ["main"])
    port: str = ports[output["n"] % len(ports)]
    return port


def failures_of(output: dict[str, Any], plan: dict[str, Any]) -> int:
    """Return how many tries fail before one succeeds."""
    if "fails_below" in plan:
        return ALWAYS if output["n"] < plan["fails_below"] else 0
    fails: int = plan.get("fails", 0)
    return fails


def make(app: App, *, seconds: float = 0.0) -> App:
    """Give an app its tasks; each try takes so long, half of it before anything is stored."""

    @app.task(name="mix", retry=Backoff.none())
    async def mix(given: Any = None) -> dict[str, Any]:
        """Return what comes of its input."""
        await asyncio.sleep(seconds)
        return worth(given, {})

    @app.task(name="act", retry=Backoff.fixed(0, max_attempts=USUAL_TRIES))
    async def act(ctx: Context, given: Any = None, plan: dict[str, Any] | None = None) -> Any:
        """End as planned."""
        plan = plan or {}
        await asyncio.sleep(seconds / 2)
        output = worth(given, plan)
        if plan.get("snooze") and await _is_new(ctx, "snooze"):
            return Snooze(0)
        fails = await _fails(ctx, failures_of(output, plan))
        await asyncio.sleep(seconds / 2)
        if fails:
            return _end_badly(plan)
        return Done(output, port_of(output, plan))

    return app


async def _fails(ctx: Context, failures: int) -> bool:
    """Whether this try fails. Which one it is, its steps tell: no number is the same at both levels."""
    if failures == ALWAYS:
        return True
    for number in range(failures):
        if await _is_new(ctx, f"try-{number}"):
            return True
    return False


async def _is_new(ctx: Context, step: str) -> bool:
    ran: list[int] = []
    await ctx.step(step, lambda: ran.append(1))
    return bool(ran)


def _end_badly(plan: dict[str, Any]) -> Any:
    match plan["how"]:
        case "fail":
            return Fail("no luck")
        case "cancel":
            return Cancel("no luck")
        case "retry":
            return Retry("no luck", delay=0)
    raise ERRORS[plan["how"]]("no luck")
