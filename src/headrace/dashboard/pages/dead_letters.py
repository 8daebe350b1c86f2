"""Dead letters in groups of one error, and running them again: what the page lists is what its button runs."""

from __future__ import annotations

from headrace.dashboard.asking import named
from headrace.dashboard.page import Context, Page, View
from headrace.engine.dead_letter_look import look_for, none_of
from headrace.engine.dead_letters import LOOK
from headrace.model.dead_letter import DeadLetterFilter
from headrace.model.durations import parse_duration

#: Groups that are shown.
MOST = 50
_NAMES = ("queue", "task", "kind", "fingerprint", "since")


async def dead_letters(view: View) -> Context:
    """Return the dead letters that are asked for, from the newest failed jobs, as the API looks for them."""
    asked = {name: view.query.get(name, "").strip() for name in _NAMES}
    wanted = DeadLetterFilter(
        queue=named(view, "queue"), task=named(view, "task"), kind=asked["kind"] or None,
        fingerprint=asked["fingerprint"] or None,
        within=parse_duration(asked["since"], field="since") if asked["since"] else None,
    )  # fmt: skip
    looked = await look_for(view.app.runtime.stores, wanted, look=LOOK)
    chosen = {name: text for name, text in asked.items() if text}
    return {
        "asked": asked, "found": looked.found, "groups": looked.found.groups[:MOST], "chosen": chosen,
        "which": chosen or {"all": True}, "left_out": len(looked.found.groups) - MOST,
        "why_none": None if looked.found.count else none_of(looked),
    }  # fmt: skip


PAGES = (
    Page(
        "dead_letters", "/dead-letters", dead_letters, title="Dead letters", group="System", every=15.0,
        query=frozenset(_NAMES),
    ),
)  # fmt: skip
