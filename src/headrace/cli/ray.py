"""`headrace ray`: a Ray cluster of this machine, for development."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.exits import Exit
from headrace.cli.output import json_option, print_facts, print_json, print_text
from headrace.cli.values import WholeType
from headrace.model.errors import BrokerUnavailableError, ConfigError

if TYPE_CHECKING:
    from headrace.executors.ray.local_state import LocalState
    from headrace.settings import Settings

_NONE = "no local Ray cluster runs here: start one with `headrace ray up`"


@click.group()
def ray() -> None:
    """Start, stop and look at a Ray cluster of this machine, for development.

    Jobs of queues with `executor = "ray"` run there: workers whose [ray] address is "auto" find it by the app's
    directory. For clusters of several machines see docs/howto/ray-cluster.md.
    """


@ray.command()
@click.option(
    "--config", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="Start the nodes of `ray.cluster` in this file of `memory run`, cut to what this machine has.",
)  # fmt: skip
@click.option("--nodes", metavar="N", type=WholeType("nodes", 1, 8), default=1, help="Nodes, the head node included.")
@click.option(
    "--num-cpus", metavar="N", type=WholeType("num-cpus", 1, 256), show_default=False,
    help="CPUs that each node offers.  [default: an even share of this machine's]",
)  # fmt: skip
@click.option(
    "--object-store-memory",
    "store",
    metavar="SIZE",
    default="",
    show_default=False,
    help='Object store of each node, such as "512MB".  [default: 256MB]',
)
@click.option(
    "--port", metavar="PORT", type=WholeType("port", 1024, 65_535), show_default=False,
    help="Port of the head node.  [default: 26379, or a free one]",
)  # fmt: skip
@json_option
@click.pass_context
def up(  # noqa: PLR0913 - click hands over one per option
    ctx: click.Context, file: Path | None, nodes: int, num_cpus: int | None, store: str, port: int | None, as_json: bool
) -> None:
    """Start a Ray cluster on 127.0.0.1, which runs until `headrace ray down`.

    It listens on loopback alone and asks everyone for a token, which is made in the app's directory for this user; it
    has no dashboard and reports to nobody. What it is told about itself is in ray.json there. It needs
    `pip install 'headrace[ray]'`.

    \b
    Examples:
      headrace ray up
      headrace ray up --nodes 2 --num-cpus 1 --object-store-memory 200MB
      headrace ray up --config ray_task_config.yaml
    """
    _refuse_both(ctx, file)
    from headrace.settings import load_settings
    from headrace.wiring.ray_local import Asked, start_local

    larger = None if file is None else _nodes_of(file)
    state, started = start_local(load_settings(), Asked(nodes, num_cpus, store, larger), port)
    if as_json:
        print_json({"started": started, **_document(state)})
        return
    words = "A Ray cluster runs on this machine" if started else "A Ray cluster runs on this machine already"
    print_text(f"{words}: {_nodes_words(state)}, at {state.address} (loopback only, with a token).")
    print_text('Workers whose [ray] address is "auto" find it. Stop it with `headrace ray down`.')


def _nodes_of(file: Path) -> list[tuple[float, int, int]]:
    """Return what the nodes of `ray.cluster` have: CPUs, object store, memory. Raises ConfigError."""
    from headrace.apps.memory.config import read_config

    cluster = read_config(file).cluster
    nodes = [cluster.head, *(alike.resources for alike in cluster.workers for _ in range(alike.count))]
    return [(node.cpu, node.object_store_memory or 0, node.memory) for node in nodes]


def _refuse_both(ctx: click.Context, file: Path | None) -> None:
    given = [
        f"--{name.replace('_', '-')}" for name in ("nodes", "num_cpus")
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    ]  # fmt: skip
    if ctx.params["store"]:
        given.append("--object-store-memory")
    if file is not None and given:
        raise click.UsageError(f"--config says what the nodes have: leave out {', '.join(given)}")


@ray.command()
@json_option
def down(as_json: bool) -> None:
    """Stop the Ray cluster that `headrace ray up` has started in this directory, and no other.

    Jobs that run there run again once there is a cluster.

    \b
    Example:
      headrace ray down
    """
    from headrace.settings import load_settings
    from headrace.wiring.ray_local import local_cluster

    stopped = local_cluster(load_settings()).down()
    if as_json:
        print_json({"stopped": stopped is not None, "address": None if stopped is None else stopped.address})
    else:
        print_text(_NONE if stopped is None else f"The Ray cluster at {stopped.address} is stopped.")


@ray.command()
@json_option
def status(as_json: bool) -> int:
    """Show the local Ray cluster: its nodes, and what of them is free. Exit code 1 when none runs, or a node is lost.

    \b
    Example:
      headrace ray status
    """
    from headrace.settings import load_settings
    from headrace.wiring.ray_local import local_cluster

    settings = load_settings()
    state = local_cluster(settings).state()
    if state is None:
        print_json({"state": "stopped"}) if as_json else print_text(_NONE)
        return Exit.FAILED
    lost = sum(not node.is_alive for node in state.nodes)
    figures = _figures(settings)
    if as_json:
        print_json({"state": "degraded" if lost else "running", **_document(state), **figures})
    else:
        shown = {name.replace("_", " "): value for name, value in figures.items()}
        lost_words = f"; {lost} of them lost, `headrace ray down` and `up` bring it back" if lost else ""
        print_facts({
            "address": state.address, "nodes": _nodes_words(state) + lost_words, **shown, "ray": state.ray,
            "token": state.token_file, "logs": state.folder / "session_latest" / "logs",
        })  # fmt: skip
    return Exit.FAILED if lost else Exit.OK


def _figures(settings: Settings) -> dict[str, Any]:
    """Return what the cluster says of itself."""
    from headrace.wiring.ray import nodes_alive

    try:
        nodes = asyncio.run(nodes_alive(settings))
    except (BrokerUnavailableError, ConfigError) as error:
        return {"fault": str(error)}
    cpus = sum(node.total.get("CPU", 0.0) for node in nodes)
    free = sum(node.free.get("CPU", 0.0) for node in nodes)
    return {"nodes_alive": len(nodes), "cpus": cpus, "cpus_free": free}


def _nodes_words(state: LocalState) -> str:
    count, cpus = len(state.nodes), sum(node.size.cpus for node in state.nodes)
    return f"{count} node{'s' * (count != 1)} with {cpus} CPU{'s' * (cpus != 1)}"


def _document(state: LocalState) -> dict[str, Any]:
    return {
        "address": state.address, "ray": state.ray, "token_file": str(state.token_file), "folder": str(state.folder),
        "node_sizes": [
            {
                "cpus": node.size.cpus, "object_store_bytes": node.size.object_store_bytes,
                "memory_bytes": node.size.memory_bytes, "alive": node.is_alive,
                "pids": [one.pid for one in node.group.living()],
            }
            for node in state.nodes
        ],
    }  # fmt: skip
