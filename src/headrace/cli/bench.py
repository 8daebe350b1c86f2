"""`headrace bench`: Headrace, the raw SQL ceiling and other job systems, measured in turns in one run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import console, json_option, print_json, print_table, print_text

if TYPE_CHECKING:
    from headrace.bench.plan import Turn
    from headrace.bench.run import Plan


@click.command()
@click.option(
    "--quick", is_flag=True, show_default=False, help="Fewer jobs and one round: a look, no figures to quote."
)
@click.option("--only", metavar="NAME,…", show_default=False, help="Only these workloads.  [default: all]")
@click.option("--peers", metavar="all|none|NAME,…", default="all", help="Which other job systems to measure.")
@click.option("--rounds", type=click.IntRange(min=1), show_default=False, help="Rounds.  [default: 3, with --quick 1]")
@click.option("--jobs", type=click.IntRange(min=100), show_default=False, help="Jobs of a drain.  [default: 20,000]")
@click.option("--source", "sources", metavar="FOLDER", multiple=True, help="Measure the worker of this src folder too.")
@click.option("--redis", metavar="URL", default="", help="A Redis server for the systems that need one.")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON here too.")
@json_option
def bench(  # noqa: PLR0913 - click hands over one per option
    quick: bool, only: str | None, peers: str, rounds: int | None, jobs: int | None, sources: tuple[str, ...],
    redis: str, out: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Measure Headrace against the raw SQL ceiling and other job systems on one server.

    \b
    Examples:
      headrace bench --quick
      headrace bench --only drain --peers none --json
    """
    from headrace.bench.report import make_report
    from headrace.bench.run import carry_out
    from headrace.bench.server import own_server

    from headrace.bench.redis_server import own_redis

    with ExitStack() as stack:
        redis = redis or stack.enter_context(own_redis())
        plan = _plan(quick=quick, only=only, peers=peers, rounds=rounds, jobs=jobs, sources=sources, redis=redis)
        server = stack.enter_context(own_server())
        told = _progress(stack, shown=not as_json and sys.stderr.isatty())
        run = asyncio.run(carry_out(plan, server, told=told))
        settings = asyncio.run(server.settings())
    report = make_report(plan, run, server=settings, notes=["this was a quick run"] if quick else [])
    if out is not None:
        out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if as_json:
        print_json(report)
    else:
        _print(report)
    return 0


def _plan(
    *, quick: bool, only: str | None, peers: str, rounds: int | None, jobs: int | None, sources: tuple[str, ...],
    redis: str,
) -> Plan:  # fmt: skip
    from headrace.bench.catalogue import WORKLOADS
    from headrace.bench.plan import QUICK, Sizes, chosen
    from headrace.bench.run import Plan, with_sources

    names = None if peers == "all" else [] if peers == "none" else peers.split(",")
    sizes = QUICK if quick else Sizes()
    if jobs is not None:
        sizes = sizes.with_drain(jobs)
    workloads = (
        tuple(only.split(","))
        if only
        else tuple(name for name, workload in WORKLOADS.items() if not (quick and workload.slow))
    )
    return Plan(
        workloads=workloads, contenders=with_sources(chosen(names), sources), sizes=sizes,
        rounds=rounds or (1 if quick else 3), redis=redis,
    )  # fmt: skip


def _progress(stack: ExitStack, *, shown: bool) -> Callable[[int, int, Turn], None]:
    if not shown:
        return lambda done, total, turn: None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = bar.add_task("", total=None)

    def tell(done: int, total: int, turn: Turn) -> None:
        bar.update(task, completed=done, total=total, description=f"{turn.round}: {turn.workload}, {turn.contender}")

    return tell


def _print(report: dict[str, Any]) -> None:
    from headrace.bench.report import COLUMNS, TARGET_COLUMNS, result_rows, target_rows

    for columns, rows in ((COLUMNS, result_rows(report)), (TARGET_COLUMNS, target_rows(report))):
        print_table(columns, rows)
        console().print()
    if not report["valid"]:
        print_text("INVALID, do not quote: " + "; ".join(report["invalid_because"]))
