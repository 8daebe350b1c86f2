"""Names of the engine for what people named: ids of nodes, names of workflows."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

#: Ids of a graph that stand for no node of a flow.
TAKE, BACK, RESULT = "loop-take", "loop-back", "result"
_RESERVED = frozenset({TAKE, BACK, RESULT})
_MOST = 48
#: Names of workflows that are flows begin with this.
PREFIX = "flow."


def slug(text: str) -> str:
    """Return a text as a short word of a-z, 0-9 and -; what has no such letters is "x".

    >>> slug("Édit Fields (1)"), slug("节点")
    ('edit-fields-1', 'x')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_MOST].rstrip("-") or "x"


def ids_of(names: Iterable[str]) -> dict[str, str]:
    """Return ids by names of nodes; those that would be the same are numbered.

    >>> ids_of(["Set", "set", "result"])
    {'Set': 'set', 'set': 'set-2', 'result': 'result-2'}
    """
    found: dict[str, str] = {}
    used = set(_RESERVED)
    for name in names:
        base = one = slug(name)
        number = 1
        while one in used:
            number += 1
            one = f"{base}-{number}"
        used.add(one)
        found[name] = one
    return found


def workflow_name(flow_name: str) -> str:
    """Return the name by which the workflow of a flow is stored; where letters are lost, with a hash of all of them.

    >>> workflow_name("Daily Report"), workflow_name("日报")
    ('flow.daily-report', 'flow.x-21087896')
    """
    short = slug(flow_name)
    letters = [one for one in unicodedata.normalize("NFKD", flow_name) if one.isalnum()]
    if all(one.isascii() for one in letters) and len(letters) <= len(short):
        return f"{PREFIX}{short}"
    return f"{PREFIX}{short}-{hashlib.sha256(flow_name.encode()).hexdigest()[:8]}"
