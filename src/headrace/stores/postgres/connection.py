"""The driver's connection with the array types of our statements known beforehand.

The driver asks the server about every type it meets for the first time on a connection: 25 ms of server time for
arrays of built-in types, whose numbers are fixed in PostgreSQL's own catalogue (pg_type.dat) since they exist.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]
else:
    Connection = asyncpg.Connection

#: Array types by number: name, and the number and name of the element type.
_ARRAYS = {
    199: ("_json", 114, "json"),
    1000: ("_bool", 16, "bool"),
    1001: ("_bytea", 17, "bytea"),
    1005: ("_int2", 21, "int2"),
    1007: ("_int4", 23, "int4"),
    1009: ("_text", 25, "text"),
    1016: ("_int8", 20, "int8"),
    1022: ("_float8", 701, "float8"),
    1185: ("_timestamptz", 1184, "timestamptz"),
    1187: ("_interval", 1186, "interval"),
    2951: ("_uuid", 2950, "uuid"),
}
#: In place of the statement that asked the server: it has a name, so the driver need not prepare its own again.
_NO_STATEMENT = SimpleNamespace(name="none")


class PreparedConnection(Connection):
    """Answers the driver's question about known types itself; others still go to the server."""

    __slots__ = ()

    async def _introspect_types(self, typeoids: set[int], timeout: float | None) -> Any:
        if all(number in _ARRAYS for number in typeoids):
            return [_describe(number) for number in typeoids], _NO_STATEMENT
        return await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]


def _describe(number: int) -> dict[str, Any]:
    name, element, element_name = _ARRAYS[number]
    nothing = dict.fromkeys(
        ("basetype", "basetype_name", "range_subtype", "range_subtype_name", "attrtypoids", "attrnames")
    )
    return {
        **nothing,
        "oid": number,
        "ns": "pg_catalog",
        "name": name,
        "kind": b"b",
        "elemtype": element,
        "elemdelim": ",",
        "elemtype_name": element_name,
        "depth": 0,
    }
