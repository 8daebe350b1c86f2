"""Run seeds of the simulation: `python -m headrace.testing.simulation --help`.

Exit codes: 0 every invariant held, 1 one did not, 2 a mistake in the arguments, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NoReturn

from headrace.testing.simulation.campaign import WORLDS, Totals, run_seeds
from headrace.testing.simulation.report import Run

#: These take most of a year on one core.
MOST_SEEDS = 1_000_000_000


class Parser(argparse.ArgumentParser):
    """Tells mistakes as JSON to those who asked for JSON."""

    json_wanted = False

    def error(self, message: str) -> NoReturn:
        """End with 2."""
        if not self.json_wanted:
            super().error(message)
        self.exit(2, json.dumps({"error": {"code": "usage", "message": message}}) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for and return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    parser.json_wanted = "--json" in given
    options = parser.parse_args(given)
    if options.trace and options.seed is None:
        parser.error("argument --trace: needs --seed")
    try:
        return _campaign(options) if options.seed is None else _replay(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        return 130


def _campaign(options: argparse.Namespace) -> int:
    seeds = range(options.first, options.first + options.seeds)
    started, cpu = time.perf_counter(), sum(os.times()[:4])
    totals = Totals()
    for run in _with_progress(run_seeds(seeds, jobs=options.jobs, world=options.world), len(seeds), quiet=options.json):
        totals.add(run)
        if not run.ok and not options.json:
            print(run.report(options.last))  # noqa: T201
        if not run.ok and not options.keep_going:
            break
    # Closed by now, so that the time of the children is known.
    _tell(totals, json_wanted=options.json, seconds=time.perf_counter() - started, cpu=sum(os.times()[:4]) - cpu)
    return 1 if totals.failures else 0


def _parser() -> Parser:
    parser = Parser(prog="python -m headrace.testing.simulation", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seeds", type=_at_least_one, default=200, help="how many (default 200)")
    which.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--world", choices=list(WORLDS), default="jobs", help="what is simulated (default jobs)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every line of the trace")
    parser.add_argument("--last", type=_at_least_one, default=40, help="lines of the trace in a report (default 40)")
    parser.add_argument("--jobs", type=_at_least_one, default=1, help="processes that share the seeds (default 1)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first broken invariant")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_SEEDS:,}, got {text}")
    return number


def _replay(options: argparse.Namespace) -> int:
    run = WORLDS[options.world](options.seed, traced=True)
    if options.json:
        totals = Totals()
        totals.add(run)
        print(json.dumps({**totals.to_json(), "trace_hash": run.trace_hash}, indent=2))  # noqa: T201
    else:
        print(run.report(len(run.trace) if options.trace else options.last))  # noqa: T201
        if options.trace and run.ok:
            print("\n".join(run.trace))  # noqa: T201
        print(f"trace hash: {run.trace_hash}")  # noqa: T201
    return 0 if run.ok else 1


def _with_progress(runs: Iterable[Run], total: int, *, quiet: bool) -> Iterator[Run]:
    if quiet or not sys.stderr.isatty():
        yield from islice(runs, total)
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(runs, "simulating", total=total, console=Console(stderr=True), transient=True)


def _tell(totals: Totals, *, json_wanted: bool, seconds: float, cpu: float) -> None:
    if json_wanted:
        document = {**totals.to_json(), "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 3)}
        print(json.dumps(document, indent=2))  # noqa: T201
        return
    verdict = f"{len(totals.failures)} broke an invariant" if totals.failures else "every invariant held"
    counts, each = totals.counts, totals.seeds or 1
    faults = sum(number for name, number in counts.items() if name.startswith("calls: ") and name != "calls: ok")
    jobs = sum(number for name, number in counts.items() if name.startswith("jobs: "))
    print(  # noqa: T201
        f"{totals.seeds} seeds, {verdict}: {totals.steps} store calls, {faults} faults, {jobs} jobs, "
        f"{counts['crashed attempts']} crashed attempts, {totals.virtual_seconds / 3600:.1f} virtual hours "
        f"in {seconds:.1f} s ({totals.seeds / seconds:.0f} seeds/s, {1000 * cpu / each:.0f} ms of CPU a seed)"
    )


if __name__ == "__main__":
    sys.exit(main())
