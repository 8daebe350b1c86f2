"""The cluster as a driver sees it: connected, looked at, asked to run calls. All blocks but `send` and `cancel`."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from headrace.executors.ray.asking import is_stale, part_of, total_of
from headrace.executors.ray.fitting import Amounts, Node
from headrace.executors.ray.site import RaySite

# Before Ray is imported: it tells nobody that it is used, and begins no cluster of its own, or joins the next best one,
# for a call that comes while this process is connected to none.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")

import ray
from ray import ObjectRef
from ray._private import services
from ray._private.state import GlobalState
from ray._raylet import GcsClientOptions  # type: ignore[attr-defined]  # made by Cython
from ray.autoscaler.sdk import request_resources
from ray.experimental import internal_kv as notes

from headrace.executors.ray.remote import call
from headrace.executors.ray.saying import log_as_others_do

#: A head node that does not take a connection for so long is away.
REACH_SECONDS = 3.0
#: What workers note at the head node has keys of its own.
_NOTES = b"headrace"
#: Ray's names of what is asked by arguments of their own.
_ARGUMENTS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}


class Cluster:
    """The connection of this process to a cluster; Ray has one for each process."""

    def __init__(self, site: RaySite) -> None:
        self._site = site
        self._function: Any = ray.remote(max_retries=0, retry_exceptions=False)(call)
        #: Whether this connected, and so is to disconnect: a program may have done so for itself.
        self._owns = False
        self._connected = False
        #: Held by calls, and before they are not possible any more: the program may have imported Ray first, as it is.
        self._lock = threading.Lock()
        #: The node that this process is on.
        self.here = ""

    def connect(self) -> None:
        """Connect, which takes a second or more. Raises what Ray does."""
        if not ray.is_initialized():
            reach(self._site.address)
            log_as_others_do()
            ray.init(
                address=self._site.address, namespace=self._site.namespace, log_to_driver=False,
                configure_logging=False, runtime_env=dict(self._site.runtime_env) or None,
            )  # fmt: skip
            self._owns = True
        # Given nothing it is refused, but only once the head node has the function: `send` need not wait for that.
        with suppress(TypeError):
            self._function.remote()
        self.here = ray.get_runtime_context().get_node_id()
        self._connected = True

    def disconnect(self) -> None:
        """Leave the cluster: what runs there for this process ends."""
        with self._lock:
            self._connected = False
        if self._owns and ray.is_initialized():
            ray.shutdown()
        self._owns = False

    def look(self) -> list[Node]:
        """Return the nodes that are alive."""
        return nodes_of(ray._private.state.state)

    def send(self, need: Amounts, word: str) -> tuple[ObjectRef[bytes], Future[bytes]]:
        """Let a node with so much room run a call; does not wait for anything.

        Raises ValueError for a need that Ray refuses, ConnectionError without a connection.
        """
        site, prepared = self._site, self._function.options(name="headrace", **_options(need))
        with self._lock:
            self._need_connection()
            ref = prepared.remote(site.entry, site.luggage, word)
            return ref, ref.future()

    def cancel(self, ref: ObjectRef[bytes], *, force: bool) -> None:
        """Interrupt a call, or end its process; one that was not begun never is. Raises ConnectionError without one."""
        with self._lock:
            self._need_connection()
            ray.cancel(ref, force=force)

    def _need_connection(self) -> None:
        if not self._connected:
            raise ConnectionError("not connected to the Ray cluster")

    def want(self, bundles: Sequence[Amounts]) -> None:
        """Ask the autoscaler for a cluster on which these, and what other workers want, fit at once."""
        with self._lock:
            self._need_connection()
            mine = b"wants:" + ray.get_runtime_context().get_job_id().encode()
        now = time.time()
        notes._internal_kv_put(mine, part_of(bundles, now), namespace=_NOTES)
        parts = {key: notes._internal_kv_get(key, namespace=_NOTES) or b"" for key in _keys()}
        for key in [key for key, part in parts.items() if is_stale(part, now)]:
            notes._internal_kv_del(key, namespace=_NOTES)
        request_resources(bundles=total_of(parts.values(), now))


def check_need(need: Amounts) -> None:
    """Raise ValueError for what Ray takes for no need of a task."""
    ray.remote(call).options(**_options(need))


def _options(need: Amounts) -> dict[str, Any]:
    options: dict[str, Any] = {_ARGUMENTS[name]: amount for name, amount in need.items() if name in _ARGUMENTS}
    return options | {"resources": {name: amount for name, amount in need.items() if name not in _ARGUMENTS}}


def _keys() -> list[bytes]:
    return sorted(notes._internal_kv_list(b"wants:", namespace=_NOTES))


# Ray's state has no types.
def nodes_of(state: Any) -> list[Node]:
    """Return the nodes that the head node takes for alive."""
    free: Mapping[str, Amounts] = state.available_resources_per_node()
    alive = {one["NodeID"]: one["Resources"] for one in state.node_table() if one["Alive"]}
    return [Node(name, total, free[name]) for name, total in alive.items() if name in free]


def reach(address: str) -> str:
    """Return the address of the head node, which listens there. Raises OSError where it does not: Ray asks for long."""
    found = services.canonicalize_bootstrap_address(address)
    if found is None:
        raise ConnectionError("this machine is a node of no Ray cluster that runs")
    host, _, port = found.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    return str(found)


def peek(address: str) -> list[Node]:
    """Return the nodes of a cluster for one who runs nothing there, and so need not connect as a driver.

    Raises OSError where none is found, or what Ray raises.
    """
    found = reach(address)
    state: Any = GlobalState()  # type: ignore[no-untyped-call]
    state._initialize_global_state(
        GcsClientOptions.create(found, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=True)
    )
    try:
        return nodes_of(state)
    finally:
        state.disconnect()
