"""Many seeds, in one process or in several."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.testing.simulation.pauses import run_pauses
from headrace.testing.simulation.report import Run
from headrace.testing.simulation.world import run_seed

#: Seeds that a child process runs before it reports.
BLOCK = 20

#: What can be simulated: jobs, batches and gates, or tasks that wait for events.
WORLDS = {"jobs": run_seed, "pauses": run_pauses}


@dataclass(slots=True)
class Totals:
    """What a campaign did."""

    seeds: int = 0
    steps: int = 0
    virtual_seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Run] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Count one run."""
        self.seeds += 1
        self.steps += run.steps
        self.virtual_seconds += run.seconds
        self.counts.update(run.counts)
        if not run.ok:
            self.failures.append(run)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-able values; traces only of what failed."""
        return {
            "ok": not self.failures,
            "seeds": self.seeds,
            "steps": self.steps,
            "virtual_seconds": round(self.virtual_seconds, 3),
            "counts": dict(sorted(self.counts.items())),
            "failures": [_failure(run) for run in self.failures],
        }


def _failure(run: Run) -> dict[str, Any]:
    invariant, what = run.violation or ("", "")
    return {
        "seed": run.seed, "step": run.steps, "invariant": invariant, "what": what, "trace": list(run.trace[-40:]),
        "replay": run.replay,
    }  # fmt: skip


def run_seeds(seeds: Sequence[int], *, jobs: int = 1, world: str = "jobs") -> Iterator[Run]:
    """Run seeds of a world in order and yield what came of each; `jobs` processes share them.

    >>> [run.ok for run in run_seeds(range(1, 3))]
    [True, True]
    """
    if jobs == 1:
        for seed in seeds:
            yield _run(world, seed)
        return
    blocks = [seeds[start : start + BLOCK] for start in range(0, len(seeds), BLOCK)]
    # Spawned: a fork would copy threads that draw progress bars. Ctrl-C is for the one who ends them.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        for runs in pool.imap(partial(_run_block, world), blocks):
            yield from runs


def _run_block(world: str, seeds: Sequence[int]) -> list[Run]:
    return [_run(world, seed) for seed in seeds]


def _run(world: str, seed: int) -> Run:
    run = WORLDS[world](seed)
    # A run leaves cycles of tasks and coroutines; all of them are young.
    gc.collect(0)
    return run
