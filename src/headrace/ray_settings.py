"""`[ray]`: the cluster on which the jobs of queues with `executor = "ray"` run, and what each of them takes there."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.errors import ConfigError

RAY = "ray"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOST = r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,30}|\[[0-9A-Fa-f:]{2,45}(?:\.[0-9]{1,3}){0,3}\]"
_ADDRESS = re.compile(rf"auto|(?:{_HOST}):([0-9]{{1,5}})")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?) ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?")
_UNITS = {"": 1, "B": 1, **{f"{letter}B": 1000**n for n, letter in enumerate("KMGT", 1)}}
_UNITS |= {f"{letter}iB": 1024**n for n, letter in enumerate("KMGT", 1)}
#: Ray counts in ten-thousandths.
_LEAST = 0.0001
#: Ray's own names of resources, which have keys of their own here.
_OWN = frozenset({"CPU", "GPU", "memory", "object_store_memory"})


@dataclass(frozen=True, slots=True)
class RayResources:
    """`[ray.resources.NAME]`: what a job of the queue NAME takes of a node of the cluster."""

    #: processors, more than zero; a share is one such as 0.5
    num_cpus: float = 1.0
    #: GPUs, or a share of one; asked only while the cluster has GPUs at all
    num_gpus: float = 0.0
    #: memory that a node must have free by its own account, such as "2GB"; empty: none is set apart
    memory: str = ""
    #: further resources by the names that nodes give them, such as ["tpu=1", "ssd=0.5"]
    custom: tuple[str, ...] = ()

    def amounts(self) -> dict[str, float]:
        """Return what a job takes, by Ray's names. Raises ConfigError.

        >>> RayResources(num_cpus=0.5, memory="1KiB", custom=("ssd=2",)).amounts()
        {'CPU': 0.5, 'memory': 1024.0, 'ssd': 2.0}
        """
        amounts = {"CPU": self.num_cpus, "GPU": self.num_gpus, "memory": float(parse_size("memory", self.memory))}
        for text in self.custom:
            name, _, amount = text.partition("=")
            if not name or name in _OWN:
                raise ConfigError(f'custom must be like "tpu=1", with no name that has a key of its own, got {text!r}')
            amounts[name] = _number(text, amount)
        return {name: amount for name, amount in amounts.items() if amount}


@dataclass(frozen=True, slots=True)
class RaySettings:
    """`[ray]`: the cluster of queues with `executor = "ray"`; needs the extra `headrace[ray]`."""

    #: "auto", the cluster that this machine is a node of, or HOST:PORT, that of its head node
    address: str = "auto"
    #: the namespace within the cluster in which named actors are found
    namespace: str = "headrace"
    #: a folder with the code, and perhaps a headrace.toml, that Ray copies to each node; empty: it is there already
    working_dir: str = ""
    #: further packages or modules, each a folder, that Ray copies to each node
    py_modules: tuple[str, ...] = ()
    #: what Ray installs on each node before the first job, as pip is told
    pip: tuple[str, ...] = ()
    #: environment variables that go along to the nodes beside those of Headrace, such as OPENAI_API_KEY
    env_vars: tuple[str, ...] = ()
    #: true: workers leave the app's agents to one actor of the cluster, which takes half a processor
    agents: bool = False
    #: what the jobs of a queue take, by its name; one processor unless given
    resources: Mapping[str, RayResources] = field(default_factory=dict)

    def amounts(self, queue: str) -> dict[str, float]:
        """Return what a job of a queue takes, by Ray's names."""
        return self.resources.get(queue, RayResources()).amounts()


def parse_size(name: str, text: str) -> int:
    """Return bytes of a text such as "2GB" or "512 MiB"; an empty one is 0. Raises ConfigError.

    >>> parse_size("memory", "1.5KB"), parse_size("memory", "")
    (1500, 0)
    """
    if not text:
        return 0
    if (found := _SIZE.fullmatch(text)) is None:
        raise ConfigError(f'{name} must be a size such as "2GB" or "512MiB", got {text!r}')
    return int(float(found[1]) * _UNITS[found[2] or ""])


def check_ray(ray: RaySettings) -> None:
    """Check the rules of `[ray]`. Raises ConfigError naming the key, the rule and the value."""
    if ray.address.startswith("ray://"):
        raise ConfigError(
            'ray.address cannot be ray://…, as a worker must be a node of the cluster: run it on one, with "auto", '
            "or with HOST:PORT of the head node"
        )
    found = _ADDRESS.fullmatch(ray.address)
    if found is None or not 1 <= int(found[1] or 1) <= 65535:
        raise ConfigError(f'ray.address must be "auto" or HOST:PORT, with a port from 1 to 65535, got {ray.address!r}')
    if not _NAME.fullmatch(ray.namespace):
        rule = "must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit"
        raise ConfigError(f"ray.namespace {rule}, got {ray.namespace!r}")
    for name in ray.env_vars:
        if not _VARIABLE.fullmatch(name):
            # A value may have been written where a name is meant.
            raise ConfigError("ray.env_vars must be names of environment variables, without their values")
    for queue, table in ray.resources.items():
        try:
            _check_amounts(table)
        except ConfigError as error:
            raise ConfigError(f"ray.resources.{queue}: {error}") from None


def _check_amounts(table: RayResources) -> None:
    if not _LEAST <= table.num_cpus < math.inf:
        raise ConfigError(f"num_cpus must be at least {_LEAST}, got {table.num_cpus}")
    if table.num_gpus != 0 and not _is_share(table.num_gpus):
        raise ConfigError(f"num_gpus must be 0, a share from {_LEAST} to 1, or a whole number, got {table.num_gpus}")
    table.amounts()


def _number(text: str, amount: str) -> float:
    try:
        number = float(amount)
    except ValueError:
        number = 0.0
    if not _is_share(number):
        raise ConfigError(f'custom must be like "tpu=1", a share from {_LEAST} to 1 or a whole number, got {text!r}')
    return number


def _is_share(number: float) -> bool:
    return _LEAST <= number < math.inf and (number <= 1 or number == int(number))
