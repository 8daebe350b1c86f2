"""Guards of resume handles, each with the edit that takes it away and the invariant that must notice.

Those of the memory store stand for what the statements of PostgreSQL have to guard as well.
"""

from __future__ import annotations

from functools import partial

from headrace.testing.simulation.pause_rules import COUNTED, COUNTED_ONCE, FAIR, ONE, ONE_WINNER, TOLD, WOKEN
from tests.mutants.simulation_mutants import MEMORY
from tests.mutants.simulation_mutants import mutant as any_mutant

STORE, ROWS = f"{MEMORY}/handle_store.py", f"{MEMORY}/handles.py"
MODEL, CALLBACKS = "model/resume_handle.py", "engine/events/callbacks.py"
STUCK = "nothing is parked for ever"

mutant = partial(any_mutant, world="pauses")

PAUSE_MUTANTS = (
    mutant(
        "handles: a second one takes the place of the first",
        (STORE, "if row is None:\n            now", "if True:\n            now"),
        by=(ONE, ONE_WINNER, COUNTED),
    ),
    mutant(
        "ends: an event counts after the end",
        (STORE, "if not row.state.final:\n            row.keep", "if True:\n            row.keep"),
        by=ONE_WINNER,
    ),
    mutant(
        "ends: a cancel comes after another end",
        (
            STORE,
            "if not row.state.final:\n            self._end(row, HandleState.CANCELLED)",
            "if True:\n            self._end(row, HandleState.CANCELLED)",
        ),
        by=ONE_WINNER,
    ),
    mutant(
        "ends: a handle expires after another end",
        (STORE, "if not row.state.final and row.expires_at <= now]", "if row.expires_at <= now]"),
        by=ONE_WINNER,
    ),
    mutant(
        "ends: a token works after another end",
        (STORE, "if row.state.final and row.payload != payload:", "if False:"),
        (
            STORE,
            "if not row.state.final:\n            row.payload",
            "if row.payload != payload:\n            row.payload",
        ),
        by=ONE_WINNER,
    ),
    mutant(
        "ends: a handle expires before its time",
        (STORE, "not row.state.final and row.expires_at <= now]", "not row.state.final]"),
        by=FAIR,
    ),
    mutant(
        "early events: they are not looked for",
        (
            STORE,
            "                row.keep(noted)\n            self._resolve",
            "                pass\n            self._resolve",
        ),
        by=COUNTED,
    ),
    mutant(
        "early events: they do not resolve",
        (STORE, "row.keep(noted)\n            self._resolve(row)\n        elif", "row.keep(noted)\n        elif"),
        by="what has come resolves",
    ),
    mutant(
        "notes: an event counts each time it comes",
        (ROWS, "self.kept.setdefault(noted.event.id, noted)", "self.kept[str(len(self.kept))] = noted"),
        by=(COUNTED_ONCE, TOLD),
    ),
    mutant(
        "notes: a dead request counts beside its result",
        (MODEL, " if not (noted.dead and noted.event.id in caused)})", "})"),
        by=COUNTED_ONCE,
    ),
    mutant(
        "notes: the dead letters of any agent count",
        (MODEL, " and (not handle.agents or noted.agent in handle.agents)", ""),
        by=COUNTED_ONCE,
    ),
    mutant(
        "wakes: an end sends no signal",
        (STORE, 'signalling.send(self._state, key, f\'{{"state":"{final}"}}\') or ()', "()"),
        by=WOKEN,
    ),
    mutant(
        "wakes: parking does not look for a signal that came",
        (f"{MEMORY}/state.py", "if park.key is not None and park.key in self.parked.signals:", "if False:"),
        by=WOKEN,
    ),
    mutant(
        "wakes: a job waits for the time alone",
        ("engine/events/waiting.py", '{handle.correlation_id}", key=key)', '{handle.correlation_id}", key=None)'),
        by=WOKEN,
    ),
    mutant(
        "wakes: the target is forgotten",
        (STORE, "row.wake_at = row.ended_at", "row.wake_at = None"),
        by=WOKEN,
    ),
    mutant(
        "wakes: a target that is not ready is not tried again",
        ("engine/loops/waking.py", "elif await waker.wake(target) is Woken.DONE:", "elif await waker.wake(target):"),
        by=STUCK,
    ),
    mutant(
        "sweeps: nobody ends what was waited for in vain",
        ("engine/loops/handle_sweeper.py", "await self._handles.expire_handles(limit=SLICE)", "[]"),
        by=STUCK,
    ),
    mutant(
        "callbacks: an event is given up when the store is away",
        (CALLBACKS, "            await asyncio.sleep(pause)\n", "            return None\n"),
        by=COUNTED,
    ),
    mutant(
        "callbacks: a handle that is remembered needs no more events",
        (
            CALLBACKS,
            "return known is None or (not known.state.final and expects(known, noted))",
            "return known is None",
        ),
        by=COUNTED,
    ),
    mutant(
        "waits: a result is told without looking who won",
        ("engine/events/waiting.py", "if view.state is HandleState.CANCELLED:", "if False:"),
        by=TOLD,
    ),
)
