"""`headrace dlq`: dead letters grouped by their error, and run again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import (
    console,
    json_option,
    one_line,
    print_facts,
    print_json,
    print_table,
    print_text,
    shorten,
)
from headrace.cli.plain import plain
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, JsonType, NameType, WholeType, parse_json
from headrace.engine.dead_letter_look import Bound, Looked, look_for, looked_document, none_of
from headrace.engine.dead_letters import LOOK, find_dead_letters
from headrace.engine.dead_letters import redrive as redrive_jobs
from headrace.engine.queries import show_job, to_json
from headrace.model.dead_letter import DeadLetterFilter, DeadLetterGroup, DeadLettersFound
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.job import AttemptRecord, JobView
from headrace.model.merge_patch import check_argument_patch
from headrace.ports.stores import Stores

COLUMNS = ("FINGERPRINT", "COUNT", "TASK", "KIND", "QUEUES", "FIRST", "LAST", "MESSAGE")
_GIVE = Give(first=("FIRST", "QUEUES", "LAST", "KIND"), prose=("MESSAGE",), lists=("QUEUES",))
_GROUPS = 20
_FILTERS = (
    click.option("--queue", metavar="NAME", type=NameType(), show_default=False, help="Only jobs of this queue."),
    click.option("--task", metavar="NAME", show_default=False, help="Only jobs of this task."),
    click.option("--kind", metavar="KIND", show_default=False, help="Only this kind of error, such as ValueError."),
    click.option("--since", metavar="TIME", type=DurationType(), show_default=False, help="Failed since, such as 7d."),
    click.option(
        "--look", metavar="N", type=WholeType("look", 1, 1_000_000), default=LOOK,
        help="Look at the newest N failed jobs.",
    ),
)  # fmt: skip
_fingerprint = click.option(
    "--fingerprint", metavar="TEXT", show_default=False, help="Only this group, or those that begin so."
)


def _filtered(command: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda made, option: option(made), reversed(_FILTERS), command)


@click.group()
def dlq() -> None:
    """Dead letters: what failed, grouped by its error, and running it again.

    A dead letter is a failed job that was not run again. Errors that differ only in numbers, ids, quoted text and
    paths have one fingerprint.
    """


@dlq.command("list")
@_fingerprint
@_filtered
@json_option
def list_(look: int, as_json: bool, **which: Any) -> None:
    """List dead letters by fingerprint, the largest groups first.

    \b
    Examples:
      headrace dlq list
      headrace dlq list --queue llm --since 7d
    """
    looked = _find(wanted=_filter(which), look=look)
    if as_json:
        print_json(looked_document(looked))
        return
    if looked.found.groups:
        print_table(COLUMNS, [_row(group) for group in looked.found.groups], _GIVE)
    else:
        print_text(str(none_of(looked)))
    _print_bound(looked)


def _filter(which: dict[str, Any]) -> DeadLetterFilter:
    return DeadLetterFilter(within=which.pop("since", None), **which)


def _find(
    *, wanted: DeadLetterFilter, look: int, limit: int | None = None, patch: dict[str, Any] | None = None
) -> Looked:  # fmt: skip
    return with_stores(lambda stores: look_for(stores, wanted, look=look, limit=limit, patch=patch), looks=True)


def _row(group: DeadLetterGroup) -> tuple[object, ...]:
    queues = ", ".join(sorted(group.queues))
    message = one_line(group.message)
    return group.fingerprint, group.count, group.task, group.kind, queues, group.first_at, group.last_at, message


def _print_bound(looked: Looked) -> None:
    if looked.bound is Bound.LIMIT:
        print_text(f"Only the newest {looked.found.count}, as --limit says: there may be more.")
    elif looked.bound is Bound.LOOK:
        count = looked.found.looked_at
        print_text(f"Looked at the newest {count} failed jobs; --look {count * 10} looks further.")


@dlq.command()
@click.argument("fingerprint", metavar="FINGERPRINT")
@_filtered
@json_option
def show(fingerprint: str, look: int, as_json: bool, **which: Any) -> None:
    """Show one group of dead letters: its message whole, example jobs, and the trace of the newest.

    \b
    Example:
      headrace dlq show c974bc0330
    """
    wanted = _filter({"fingerprint": fingerprint, **which})

    async def read(stores: Stores) -> tuple[DeadLetterGroup, JobView, list[AttemptRecord]]:
        found = await find_dead_letters(stores.inspect, wanted, look=look)
        group = _only_group(found, fingerprint)
        return group, *await show_job(stores.inspect, group.examples[0])

    group, job, attempts = with_stores(read)
    if as_json:
        print_json(to_json(asdict(group)) | {"newest": to_json(job) | {"attempts": to_json(attempts)}})
    else:
        _print_group(group, job)


def _only_group(found: DeadLettersFound, fingerprint: str) -> DeadLetterGroup:
    if not found.groups:
        raise NotFoundError(
            f"none of the newest {found.looked_at} failed jobs is a dead letter with the fingerprint {fingerprint!r}; "
            "`headrace dlq list` shows those there are"
        )
    if len(found.groups) > 1:
        names = ", ".join(group.fingerprint for group in found.groups[:10])
        raise InvalidInputError("fingerprint", f"must mean one group, not {names}", fingerprint)
    return found.groups[0]


def _print_group(group: DeadLetterGroup, newest: JobView) -> None:
    print_facts(
        {
            "fingerprint": group.fingerprint,
            "jobs": group.count,
            "task": group.task,
            "queues": ", ".join(f"{queue} ({count})" for queue, count in sorted(group.queues.items())),
            "first": group.first_at,
            "last": group.last_at,
            "kind": group.kind,
            "message": shorten(group.message),
            "arguments": shorten(json.dumps(newest.args, ensure_ascii=False)),
            "jobs such as": "\n".join(str(job_id) for job_id in group.examples),
            "run it again by": _rerun(newest),
        }
    )
    if newest.error is not None and newest.error.trace:
        trace = plain(newest.error.trace.rstrip())
        console().print(f"\nTrace of the newest:\n{trace}", style="dim", soft_wrap=True)


def _rerun(newest: JobView) -> str | None:
    """Return what runs a node of a run again; a redrive leaves those out."""
    if newest.run_id is None:
        return None
    return f"headrace run rerun {newest.run_id}" + (f" --from {newest.node}" if newest.node else "")


@dlq.command()
@_fingerprint
@_filtered
@click.option(
    "--limit", metavar="N", type=WholeType("limit", 1), show_default=False, help="At most N jobs, the newest."
)
@click.option(
    "--patch",
    metavar="JSON",
    type=JsonType(),
    show_default=False,
    help='Change the arguments: a JSON merge patch of {"args": […], "kwargs": {…}}.',
)
@click.option(
    "--patch-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_default=False,
    help="Read the patch from a file.",
)
@click.option("--dry-run", is_flag=True, show_default=False, help="Only show what would run again.")
@click.option("--yes", is_flag=True, show_default=False, help="Do not ask.")
@json_option
def redrive(dry_run: bool, yes: bool, as_json: bool, **which: Any) -> None:
    """Run dead letters again, each as a new job; those that failed first are in front.

    What will run is shown before, with what a patch makes of its arguments, and asked for. A queue that is not there
    is an error; of a task without dead letters nobody can tell whether it is there, so that is none.

    With --patch every job gets changed arguments: "args" replaces all positional ones, members of "kwargs" replace
    keyword arguments, null removes one (RFC 7386). Items of a batch run in a new round of it.

    \b
    Examples:
      headrace dlq redrive --queue llm --since 1h --dry-run
      headrace dlq redrive --fingerprint c974bc0330 --yes
      headrace dlq redrive --task summarise --patch '{"kwargs": {"model": "small"}}'
    """
    patch = _patch(which.pop("patch"), which.pop("patch_file"))
    looked = _find(look=which.pop("look"), limit=which.pop("limit"), patch=patch, wanted=_filter(which))
    found = looked.found
    if not as_json:
        _preview(looked)
    if dry_run or not found.count:
        count = 0
    else:
        if not yes:
            _ask(found.count, as_json=as_json)
        count = _run_again(found, patch)
    if as_json:
        patched = {} if patch is None else {"patched": [to_json(asdict(one)) for one in looked.patched]}
        print_json(looked_document(looked) | patched | {"redriven": count})
    elif count or (found.count and not dry_run):
        print_text(_outcome(count, found.count))


def _patch(text: Any, file: Path | None) -> dict[str, Any] | None:
    if text is not None and file is not None:
        raise click.UsageError("give --patch or --patch-file, not both")
    if file is not None:
        return check_argument_patch(_read_json(file), field="--patch-file")
    return None if text is None else check_argument_patch(text, field="--patch")


def _read_json(file: Path) -> Any:
    """Return what a file of `--patch-file` holds. The error names the file and leaves out what is in it."""
    try:
        return parse_json(file.read_text("utf-8"))
    except UnicodeDecodeError as error:
        rule = f"must be JSON in UTF-8 ({error})"
    except OSError as error:
        rule = f"must be a file that can be read ({error.strerror})"
    except InvalidInputError as error:
        rule = error.rule
    raise InvalidInputError("--patch-file", rule, str(file))


def _preview(looked: Looked) -> None:
    groups = looked.found.groups
    if not groups:
        print_text(f"{none_of(looked)} Nothing to run again.")
    else:
        print_table(COLUMNS, [_row(group) for group in groups[:_GROUPS]], _GIVE)
    if len(groups) > _GROUPS:
        print_text(f"and {len(groups) - _GROUPS} smaller groups")
    for one in looked.patched:
        texts = [shorten(json.dumps(value, ensure_ascii=False)) for value in (one.arguments, one.patched)]
        print_text("")
        print_facts({"job": one.job, "task": one.task, "arguments": texts[0], "patched": texts[1]})
    if looked.patched:
        more = len(groups) - len(looked.patched)
        print_text(f"\nSo the arguments of every job change{f'; the same in {more} more groups' if more else ''}.")
    _print_bound(looked)


def _ask(count: int, *, as_json: bool) -> None:
    """Go on only after a yes. Nobody there to say it is a usage error."""
    if as_json:
        raise click.UsageError("--json does not ask: add --yes, or --dry-run to see what would run again")
    click.echo(f"Run {count} {'job' if count == 1 else 'jobs'} again? [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        raise click.UsageError("nobody is there to ask: add --yes, or --dry-run to see what would run again")
    if answer.strip().lower() not in ("y", "yes"):
        raise click.ClickException("nothing was run again")


def _run_again(found: DeadLettersFound, patch: dict[str, Any] | None) -> int:
    with click.progressbar(length=found.count, label="running again", file=sys.stderr) as bar:
        return with_stores(lambda stores: redrive_jobs(stores, found, patch=patch, on_progress=bar.update))


def _outcome(count: int, asked: int) -> str:
    if count == asked:
        return f"{count} {'job runs' if count == 1 else 'jobs run'} again"
    left = "were run again by somebody else meanwhile, or their batch is being cancelled"
    return f"{count} of {asked} jobs run again; the others {left}"
