"""`headrace queue scale`: how many workers queues want."""

from __future__ import annotations

import click

from headrace.cli.opening import with_app
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import NameType
from headrace.engine.scale_exposition import expose_scale
from headrace.engine.scaling import scale_document
from headrace.model.scale_values import ScaleSignal
from headrace.wiring.scaling import scale_signals

COLUMNS = ("QUEUE", "WANTED", "LIVE", "ELIGIBLE", "RUNNING", "SLOTS", "S/JOB", "WHY")
_GIVE = Give(first=("SLOTS", "S/JOB", "RUNNING", "ELIGIBLE"), prose=("WHY",))
_DRAINS = "A worker that is sent SIGTERM claims no more, and ends its jobs first ([worker] shutdown_grace)."


@click.command()
@click.argument("name", metavar="[QUEUE]", type=NameType(), required=False)
@click.option("--prometheus", is_flag=True, show_default=False, help="Write metrics in the text format of Prometheus.")
@json_option
def scale(name: str | None, prometheus: bool, as_json: bool) -> None:
    """Show how many workers each queue wants, for whoever starts and stops them, and why.

    As many as have slots for what runs and for what could start, to be done within [scaling] drain_within, from
    min_workers to max_workers; never more than there are while a quota, a budget or a breaker holds jobs.
    A paused queue wants only what runs.

    \b
    Examples:
      headrace queue scale
      headrace queue scale llm --json
      headrace queue scale --prometheus
    """
    if prometheus and as_json:
        raise click.UsageError("--prometheus and --json are two formats: choose one")
    signals = with_app(lambda app: scale_signals(app, queue=name))
    if prometheus:
        click.echo(expose_scale(signals), nl=False)
    elif as_json:
        documents = [scale_document(signal) for signal in signals]
        print_json(documents if name is None else documents[0])
    elif not signals:
        print_text("No queue has jobs, workers or a setting yet.")
    else:
        print_table(COLUMNS, [_row(signal) for signal in signals], _GIVE)
        if any(signal.wanted_workers < signal.load.live_workers for signal in signals):
            print_text(_DRAINS)


def _row(signal: ScaleSignal) -> tuple[object, ...]:
    load = signal.load
    seconds = "-" if load.seconds_per_job is None else f"{load.seconds_per_job:.3g}"
    return (
        signal.queue, signal.wanted_workers, load.live_workers, load.eligible, load.running, f"{load.slots:g}",
        seconds, signal.sentence,
    )  # fmt: skip
