"""How a process becomes a driver of the local cluster."""

from __future__ import annotations

import os
import sys

from headrace.executors.ray.local_cluster import driver_environment
from headrace.executors.ray.local_state import LocalState


def join(state: LocalState) -> None:
    """Set this process up for it: Ray looks at its environment when it is imported."""
    # It would count more than the file; it is that of another cluster.
    os.environ.pop("RAY_AUTH_TOKEN", None)
    environ = driver_environment(state)
    if all(os.environ.get(name) == value for name, value in environ.items()):
        return
    os.environ.update(environ)
    if "ray" in sys.modules:
        _look_again()


def _look_again() -> None:
    """Let Ray, which the app has imported already, look at the environment once more."""
    from ray._private import ray_constants
    from ray._raylet import Config  # type: ignore[attr-defined]  # made by Cython

    ray_constants.ENABLE_RAY_CLUSTER = False
    Config.initialize("")
