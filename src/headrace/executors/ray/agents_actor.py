"""The agents of an app in one actor of the cluster, which lives as long as one of the workers that keep it."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError

LOG = logging.getLogger("headrace.ray")

NAME = "headrace-agents-"
CPUS = 0.5
#: An actor that does not answer for so long is asked again at the next turn: it may wait for a node.
ANSWER_SECONDS = 5.0


class AgentsActor:
    """What the actor is. Ray finds it by its name, so it must stay where it is."""

    def __init__(self, entry: str, luggage: str, owner: str) -> None:
        self._owner = owner
        self._host = importlib.import_module(entry).host(luggage)

    def owner(self) -> str:
        """Return the driver that has made it, by its job in Ray: with that it ends."""
        return self._owner

    def stop(self) -> None:
        """Receive nothing more, and let handlers end within their grace time."""
        self._host.stop()


@dataclass(slots=True)
class AgentsKeeper:
    """Sees to it that the actor is there. Its methods block."""

    #: Names the actor: one per app and namespace.
    app: str
    namespace: str
    entry: str
    luggage: str = field(repr=False)
    #: While it is held, the actor that this process has made is not ended by Ray.
    _actor: Any = None
    #: The connection that it was made by: with another one it is another process's or none.
    _driver: str = ""

    def keep(self) -> None:
        """Look for the actor, and make it where there is none. Raises what Ray says of one that cannot begin."""
        if not ray.is_initialized():
            # The executor connects, and again when it has lost the cluster.
            return
        driver = _driver()
        if self._actor is None or self._driver != driver:
            self._actor, self._driver = self._find(driver), driver
        try:
            ray.get(self._actor.owner.remote(), timeout=ANSWER_SECONDS)
        except (GetTimeoutError, ActorUnavailableError):
            # Kept: Ray begins it again, and would end it with the last who knows of it.
            LOG.info("the actor of the agents does not answer yet: it begins, or no node has room for it")
        except RayActorError as error:
            self._actor = None
            LOG.warning("the actor of the agents is gone and is made anew: %s", _last_line(error))

    def stop(self, grace: float) -> None:
        """End the actor in order if this process has made it; another worker makes it anew."""
        actor, self._actor = self._actor, None
        if actor is None or not ray.is_initialized() or self._driver != _driver():
            return
        try:
            if ray.get(actor.owner.remote(), timeout=ANSWER_SECONDS) == self._driver:
                ray.get(actor.stop.remote(), timeout=grace + ANSWER_SECONDS)
                ray.kill(actor)
                LOG.info("the actor of the agents has ended in order")
        except RayError as error:
            LOG.info("the actor of the agents does not end in order: %s", _last_line(error))

    def _find(self, driver: str) -> Any:
        maker: Any = ray.remote(AgentsActor)
        return maker.options(
            name=NAME + self.app, namespace=self.namespace, get_if_exists=True, num_cpus=CPUS, max_restarts=-1,
            max_task_retries=0,
        ).remote(self.entry, self.luggage, driver)  # fmt: skip


def _driver() -> str:
    return str(ray.get_runtime_context().get_job_id())


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip()[:300] if lines else type(error).__name__
