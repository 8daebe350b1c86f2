"""`[celery]`: the farm on which the jobs of queues with `executor = "celery"` run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.errors import ConfigError
from headrace.model.run import NODES_QUEUE, WORKFLOWS_QUEUE
from headrace.model.webhook import QUEUE as WEBHOOKS_QUEUE
from headrace.ray_settings import RAY

LOCAL, CELERY = "local", "celery"
#: Queues of the engine's own jobs: they have nothing to run elsewhere.
ENGINE_QUEUES = frozenset({WORKFLOWS_QUEUE, NODES_QUEUE, WEBHOOKS_QUEUE})
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SCHEMES = ("redis://", "rediss://")


@dataclass(frozen=True, slots=True)
class CelerySettings:
    """`[celery]`: the farm of queues with `executor = "celery"`; needs the extra `headrace[celery]`."""

    #: the broker that workers and farm share, redis://… or rediss://…; needed where an executor is "celery"
    broker_url: str = field(default="", repr=False)
    #: the name of each Celery queue begins with this, and so do the keys of Headrace there: one per application
    queue_prefix: str = "headrace"


def check_celery(celery: CelerySettings, executors: Mapping[str, str]) -> None:
    """Raise ConfigError for what does not fit; `executors` by the keys that name them."""
    for name, executor in executors.items():
        if executor not in (LOCAL, CELERY, RAY):
            raise ConfigError(f'{name} must be "{LOCAL}", "{CELERY}" or "{RAY}", got {executor!r}')
    if not _PREFIX.fullmatch(celery.queue_prefix):
        rule = "must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit"
        raise ConfigError(f"celery.queue_prefix {rule}, got {celery.queue_prefix!r}")
    if celery.broker_url and not celery.broker_url.startswith(_SCHEMES):
        # Never with the value: a password may stand in it.
        raise ConfigError("celery.broker_url must begin with redis:// or rediss://")
