"""Models that share a quota: what is said of a pool anywhere holds for all of them.

Guarantees: all models of one pool have equal limits, so that whoever calls last does not change them for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from headrace.model.errors import ConfigError
from headrace.model.quota import PoolLimits
from headrace.model_settings import ModelSettings

#: Returns where a key of a section stands, as its user wrote it, and its value as written; None: it is not written.
Written = Callable[[str, str], tuple[str, Any]]

_LIMITS = tuple(item.name for item in fields(PoolLimits))


def share_pools(tables: Mapping[str, ModelSettings], written: Written | None = None) -> dict[str, ModelSettings]:
    """Return the tables by section, each with all limits of its pool.

    A limit that one of them gives is that of all; what none gives is as it is. `written`: unless given, what differs
    from the defaults is. Raises ConfigError where two give one limit differently.

    >>> first, second = ModelSettings(pool="p", requests_per_minute=120), ModelSettings(pool="p")
    >>> share_pools({"llm": first, "llm.models.b": second})["llm.models.b"].requests_per_minute
    120
    """
    written = written or _given_in_code(tables)
    pools: dict[str, list[str]] = {}
    for section, table in tables.items():
        pools.setdefault(table.to_llm().pool_name, []).append(section)
    shared = dict(tables)
    for pool, sections in pools.items():
        if len(sections) > 1:
            said = {name: getattr(tables[_speaker(pool, name, sections, tables, written)], name) for name in _LIMITS}
            shared |= {section: replace(tables[section], **said) for section in sections}
    return shared


def _speaker(
    pool: str, name: str, sections: Sequence[str], tables: Mapping[str, ModelSettings], written: Written
) -> str:
    """Return the section whose value of a limit holds for a pool."""
    speaking = [section for section in sections if written(section, name)[1] is not None]
    for other in speaking[1:]:
        if getattr(tables[other], name) != getattr(tables[speaking[0]], name):
            first, second = (_shown(*written(section, name)) for section in (speaking[0], other))
            raise ConfigError(
                f"[{speaking[0]}] and [{other}] share the pool {pool!r}, which has one {name}: {first}, and {second}. "
                "Write it in one of them alone, or give them pools of their own by `pool` or `account`"
            )
    # Where nobody says anything all have inherited the same.
    return (speaking or sections)[0]


def _shown(where: str, raw: object) -> str:
    return f"{where} = {raw!r}"


def _given_in_code(tables: Mapping[str, ModelSettings]) -> Written:
    default = ModelSettings()

    def find(section: str, name: str) -> tuple[str, Any]:
        value = getattr(tables[section], name)
        return f"{section}.{name}", None if value == getattr(default, name) else value

    return find
