"""What commands that work on a report have in common: how the work is done, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from headrace.apps.report.job import Job

PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class Order:
    """How the work on a report is done, and where it goes."""

    out: Path
    stage: str | None
    concurrency: int
    elsewhere: bool
    as_json: bool

    @property
    def name(self) -> str:
        """What names the job, beside its file and options: where it is written to."""
        return str(self.out.resolve())


def work_options(command: Any) -> Any:
    """Add the options of commands that work on a report."""
    options = (
        click.option(
            "--concurrency", type=click.IntRange(1, 1000), default=8, show_default=True,
            help="Questions that this process asks the model at once.",
        ),
        click.option("--workers-elsewhere", is_flag=True, help="Leave the work to `headrace worker` or a farm."),
        click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def carry_out(order: Order, begin: Callable[[], Awaitable[Job]]) -> int:
    """Work on the report that `begin` returns until it has ended, write its files, and return the exit code."""
    from headrace.apps.report.commands.ending import tell

    return tell(asyncio.run(_carried_out(order, begin)), as_json=order.as_json)


async def _carried_out(order: Order, begin: Callable[[], Awaitable[Job]]) -> dict[str, Any]:
    from headrace.apps.report.commands.ending import ended
    from headrace.apps.report.commands.following import follow, working
    from headrace.apps.report.delivering import check_folder

    check_folder(order.out)
    async with working(concurrency=order.concurrency, elsewhere=order.elsewhere):
        job = await begin()
        return await ended(job, await follow(job, quiet=order.as_json), order.out)
