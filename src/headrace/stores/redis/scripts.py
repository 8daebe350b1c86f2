"""The one loader of Lua: `scripts/VERB.lua`, one script per verb, read once.

A script names the pieces of `scripts/lib/` that it is made of (`-- include keys, bulk`), and a piece those that it
needs itself; they are put before it, behind the constants that the model defines. Its first line says what the server
may let it do: `#!lua flags=…`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headrace.model.attempt_log import MAX_ATTEMPTS
from headrace.model.crashes import EXECUTOR_LOST, MAX_LONE_CRASHES, OVERDUE, POISON, WORKER_LOST
from headrace.model.fairness import HIGH_TIME
from headrace.model.farm import BEGUN
from headrace.model.priority import HEAD_START_SECONDS
from headrace.model.run import NODE_SPEC
from headrace.model.schedule import KEPT_FIRES
from headrace.stores.redis.rows import encode_error, spec_fields, to_json

_INCLUDE = re.compile(r"^-- include (.+)$", re.MULTILINE)
#: Before everything else: the epoch that the caller remembers has to be the one of this data. Data that may be thrown
#: away has none.
_GUARD = """\
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.error_reply('STORAGE_RESET the epoch of this namespace is not there')
end
"""
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One script as the server runs it. `reads` says that it writes nothing, and may be sent again."""

    name: str
    text: str
    sha: str
    reads: bool


@cache
def load_script(name: str) -> Script:
    """Return the script `scripts/NAME.lua` with its pieces."""
    shebang, _, body = _read(f"{name}.lua").partition("\n")
    pieces: dict[str, str] = {}
    _collect(body, pieces)
    text = f"{shebang}\n{_GUARD}{_constants()}{''.join(_COMMENT.sub('', piece) for piece in [*pieces.values(), body])}"
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), "no-writes" in shebang)


def _collect(text: str, pieces: dict[str, str]) -> None:
    """Add the pieces that a text names, each behind those that it names itself."""
    included = _INCLUDE.search(text)
    for name in included[1].split(", ") if included else []:
        if name not in pieces:
            piece = _read(f"lib/{name}.lua")
            _collect(piece, pieces)
            pieces[name] = piece


def _read(path: str) -> str:
    return (files(__package__) / "scripts" / path).read_text("utf-8")


@cache
def _constants() -> str:
    """Return what the model fixes: microseconds of head start by priority, errors of sweeps, what passes nodes over."""
    starts = ", ".join(str(seconds * 1_000_000) for seconds in HEAD_START_SECONDS)
    errors = {"POISON": POISON, "WORKER_LOST": WORKER_LOST, "EXECUTOR_LOST": EXECUTOR_LOST, "OVERDUE": OVERDUE}
    values = {
        "HEAD_STARTS": f"{{{starts}}}",
        "NODE_SPEC": f"{{{', '.join(map(to_json, spec_fields(NODE_SPEC)))}}}",
        "MAX_LONE_CRASHES": MAX_LONE_CRASHES,
        "MAX_LOGS": MAX_ATTEMPTS,
        "KEPT_FIRES": KEPT_FIRES,
        "HIGH_TIME": HIGH_TIME,
        "BEGUN": to_json(BEGUN),
    }
    lines = [f"local {name} = {value}" for name, value in values.items()]
    lines += [f"local {name} = [==[{encode_error(error)}]==]" for name, error in errors.items()]
    return "".join(f"{line}\n" for line in lines)
