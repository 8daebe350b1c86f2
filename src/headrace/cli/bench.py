"""`headrace bench`: Headrace, the raw SQL ceiling and other job systems, measured in turns in one run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import console, json_option, print_json, print_table, print_text
from headrace.model.errors import ConfigError, InvalidInputError

if TYPE_CHECKING:
    from headrace.bench.plan import Turn
    from headrace.bench.run import Plan, Run
    from headrace.bench.server import BenchServer


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What `headrace bench` was asked for."""

    quick: bool
    only: str | None
    peers: str
    rounds: int | None
    jobs: int | None
    sources: tuple[str, ...]
    url: str | None
    allow_unsafe: bool
    redis: str | None
    out: Path | None


@click.command()
@click.option("--quick", is_flag=True, show_default=False, help="Fewer jobs, one round: for a look, not for figures.")
@click.option(
    "--only",
    metavar="NAME,…",
    show_default=False,
    help="Only these: drain, drain-deep, enqueue, latency, scatter, memory, gated, kill, kill-apart.  [default: all]",
)
@click.option("--peers", metavar="all|none|NAME,…", default="all", help="Which other job systems to measure.")
@click.option("--rounds", type=click.IntRange(1, 99), show_default=False, help="[default: 3; 1 with --quick]")
@click.option("--jobs", type=click.IntRange(min=100), show_default=False, help="Jobs of a drain.  [default: 20000]")
@click.option(
    "--source",
    "sources",
    metavar="FOLDER",
    multiple=True,
    show_default=False,
    help="Measure the worker of this checkout's src too, in turns with ours. Repeatable.",
)
@click.option("--url", metavar="URL", show_default=False, help="Measure on this PostgreSQL.  [default: one of its own]")
@click.option("--allow-unsafe", is_flag=True, show_default=False, help="Accept a --url server that may lose commits.")
@click.option(
    "--redis",
    metavar="URL",
    show_default=False,
    help="An empty database of a Redis server, for the systems that need one.  [default: one of its own, if installed]",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default=False,
    help="Write the report here too: Markdown for .md, else JSON.",
)
@json_option
def bench(as_json: bool, **options: Any) -> int:
    """Measure Headrace against the raw SQL ceiling and other job systems on one server.

    Starts a PostgreSQL of its own with full durability and measures in turns, three rounds, about 20 minutes with all
    systems. Prints medians with their range, ratios taken within each round, and which targets are met. Figures of a
    busy machine are marked INVALID. Other job systems are measured where they are installed (`make bench` installs
    them).

    \b
    Examples:
      headrace bench --quick
      headrace bench --only drain --peers none --json
      headrace bench --only drain,enqueue --peers pgqueuer --out report.md
    """
    from headrace.bench.ending import left_in_order

    asked = BenchOptions(**{**options, "url": options["url"] or _url_of_all_commands()})
    _check_places(asked)
    with ExitStack() as stack:
        stack.enter_context(left_in_order())
        plan = _plan(asked, stack)
        report = _measure(plan, asked, stack, shown=not as_json and sys.stderr.isatty())
    if asked.out is not None:
        _write(report, asked.out)
    if as_json:
        print_json(report)
    else:
        _print(report)
    return 0


def _url_of_all_commands() -> str | None:
    """Return `headrace --url URL bench`, said on the command line; a store of the settings is not meant."""
    above = click.get_current_context().parent
    return None if above is None else above.params.get("url")


def _check_places(asked: BenchOptions) -> None:
    """Refuse now what would be found out after minutes of measuring."""
    if asked.url is not None and not asked.url.startswith(("postgresql://", "postgres://")):
        raise InvalidInputError("--url", "must begin with postgresql://", _without_secrets(asked.url))
    if asked.redis and not asked.redis.startswith(("redis://", "rediss://")):
        raise InvalidInputError("--redis", "must begin with redis:// or rediss://", _without_secrets(asked.redis))
    for source in asked.sources:
        if not Path(source, "headrace", "__init__.py").is_file():
            raise InvalidInputError("--source", "must be a folder that holds the package headrace", source)
    if asked.out is not None and not os.access(asked.out.absolute().parent, os.W_OK | os.X_OK):
        raise InvalidInputError("--out", "must lie in a folder that exists and can be written to", str(asked.out))


def _without_secrets(url: str) -> str:
    scheme, found, _ = url.partition("://")
    return f"{scheme}://…" if found else "a text without ://"


def _plan(asked: BenchOptions, stack: ExitStack) -> Plan:
    from headrace.bench.plan import QUICK, Sizes, chosen_contenders, chosen_workloads
    from headrace.bench.redis_server import RedisServer, check_empty, own_redis
    from headrace.bench.run import Plan, with_sources

    contenders = with_sources(chosen_contenders(asked.peers), asked.sources)
    workloads = chosen_workloads(asked.only, quick=asked.quick)
    sizes = QUICK if asked.quick else Sizes()
    redis = RedisServer(asked.redis or "")
    if redis.url:
        check_empty(redis.url)
    elif any(entry.redis for entry in contenders.values()):
        redis = stack.enter_context(own_redis())
    return Plan(
        workloads=workloads, contenders=contenders, sizes=sizes if asked.jobs is None else sizes.with_drain(asked.jobs),
        rounds=asked.rounds or (1 if asked.quick else 3), redis=redis,
    )  # fmt: skip


def _measure(plan: Plan, asked: BenchOptions, stack: ExitStack, *, shown: bool) -> dict[str, Any]:
    from headrace.bench.ending import run_in_order
    from headrace.bench.report import make_report
    from headrace.bench.server import BenchServer, own_server, weaknesses

    server = stack.enter_context(own_server()) if asked.url is None else BenchServer(asked.url)
    told = _progress(stack, shown=shown)
    settings, run = run_in_order(_carry_out(plan, server, asked, told))
    notes = [f"the server may lose commits: {weak}" for weak in weaknesses(settings)]
    if asked.quick:
        notes.append("a quick run is too short to be quoted")
    return make_report(plan, run, server=settings, notes=notes)


async def _carry_out(
    plan: Plan, server: BenchServer, asked: BenchOptions, told: Callable[[int, int, Turn], None]
) -> tuple[dict[str, str], Run]:
    from headrace.bench.run import carry_out
    from headrace.bench.server import weaknesses

    settings = await server.settings()
    weak = weaknesses(settings)
    if weak and not asked.allow_unsafe:
        raise ConfigError(
            f"the server of --url may lose commits in a crash: {', '.join(weak)}. Switch them on, leave --url out, or "
            "add --allow-unsafe to have it said in the report"
        )
    return settings, await carry_out(plan, server, told=told)


def _progress(stack: ExitStack, *, shown: bool) -> Callable[[int, int, Turn], None]:
    if not shown:
        return lambda done, total, turn: None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = bar.add_task("starting", total=None)

    def tell(done: int, total: int, turn: Turn) -> None:
        shown = f"round {turn.round}: {turn.workload}, {turn.contender}"
        bar.update(task, completed=done, total=total, description=shown)

    return tell


def _write(report: dict[str, Any], path: Path) -> None:
    from headrace.bench.markdown import to_markdown

    json_text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    path.write_text(to_markdown(report) if path.suffix == ".md" else json_text, encoding="utf-8")


def _print(report: dict[str, Any]) -> None:
    from headrace.bench.report import COLUMNS, TARGET_COLUMNS, conditions, result_rows, target_rows

    for columns, rows in ((COLUMNS, result_rows(report)), (TARGET_COLUMNS, target_rows(report))):
        print_table(columns, rows)
        console().print()
    for line in conditions(report):
        print_text(line)
    if not report["valid"]:
        print_text("INVALID, do not quote: " + "; ".join(report["invalid_because"]))
