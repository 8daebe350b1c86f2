"""Starts the processes of one node on the loopback, and ends: `python -m headrace.executors.ray.node_process`.

It reads a JSON document from its standard input. `ray start` refuses a second node on a loopback address, so the node
is made as Ray's own command does it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ray
from ray._private import ray_constants
from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
from ray._private.node import Node
from ray._private.parameter import RayParams

LOOPBACK = "127.0.0.1"
#: A node is one while all of these run.
_VITAL = (ray_constants.PROCESS_TYPE_GCS_SERVER, ray_constants.PROCESS_TYPE_RAYLET)


def start(told: dict[str, Any]) -> None:
    """Start a node."""
    if not told["address"].startswith(f"{LOOPBACK}:"):
        raise ValueError(f"a local node has an address at {LOOPBACK}, got {told['address']}")
    # Never without: who reaches a node may run any code there.
    ensure_token_if_auth_enabled(None, create_token_if_missing=False)
    head = told["head"]
    place = (
        {"gcs_server_port": int(told["address"].rpartition(":")[2]), "temp_dir": told["folder"]}
        if head
        else {"gcs_address": told["address"]}
    )
    params = RayParams(
        node_ip_address=LOOPBACK, node_name=told["name"], num_cpus=told["cpus"],
        memory=told["memory"] or None, object_store_memory=told["object_store"], include_dashboard=False, **place,
    )  # fmt: skip
    node = Node(params, head=head, shutdown_at_exit=False, spawn_reaper=False)
    if node.node_ip_address != LOOPBACK:
        raise ValueError(f"Ray takes {node.node_ip_address} for the address of this node, not {LOOPBACK}")
    vital = [one.process.pid for kind in _VITAL for one in node.all_processes.get(kind, ())]
    sys.stdout.write(json.dumps({"ray": ray.__version__, "vital": vital}) + "\n")


if __name__ == "__main__":
    start(json.load(sys.stdin))
