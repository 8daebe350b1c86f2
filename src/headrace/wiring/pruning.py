"""What leaves by its age, and when: the pruners of a worker that are not for jobs."""

from __future__ import annotations

from headrace.engine.loops.age_pruner import AgePruner
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.ports.stores import Stores
from headrace.settings import Settings

#: Runs of one slice: each has many rows.
RUNS = 500


def prune_loops(settings: Settings, stores: Stores, leadership: Leadership) -> list[Loop]:
    """Return the pruners of runs, feeds, the audit and events."""
    keep, every, events = settings.recovery, settings.recovery.prune_interval, stores.events
    runs = [(stores.runs.prune_runs, keep.keep_runs), (stores.signals.prune_signals, keep.keep_runs)]
    loops: list[Loop] = [
        AgePruner("run-pruner", runs, leadership, every, limit=RUNS),
        AgePruner("feed-pruner", [(stores.feeds.prune_feeds, keep.keep_feeds)], leadership, every),
        AgePruner("audit-pruner", [(stores.audit.prune_actions, keep.keep_audit)], leadership, every),
    ]
    if events is not None:
        kept = settings.events
        kinds = [
            (events.outbox.prune_events, kept.keep_events),
            (events.inbox.prune_inbox, kept.keep_inbox),
            (events.log.prune_messages, kept.keep_messages),
            (events.handles.prune_handles, kept.keep_handles),
        ]
        loops.append(AgePruner("event-pruner", kinds, leadership, every))
    return loops
