"""Parameters that a model does not know, and that may be left out without changing what is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from headrace.providers.chat import clean_messages
from headrace.providers.fault import Fault, FaultError

#: Codes with which an endpoint says that a model does not know a parameter, or not this value of it.
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_OPTIONAL = frozenset({"temperature", "seed", "stream_options", "encoding_format"})
_BAD_REQUEST = frozenset({400, 422})

T = TypeVar("T")


class LeavingOut:
    """Remembers for each model what it does not know."""

    def __init__(self) -> None:
        self._left_out: dict[str, set[str]] = {}

    async def send(self, body: Mapping[str, Any], send: Callable[[Mapping[str, Any]], Awaitable[T]]) -> T:
        """Send; where the model does not know an optional parameter, again without it, and from then on.

        Messages that have no UTF-8 are sent with U+FFFD in its place; raises UnicodeEncodeError for anything else.
        """
        left_out = self._left_out.setdefault(str(body.get("model")), set())
        while True:
            try:
                return await send({name: value for name, value in body.items() if name not in left_out})
            except FaultError as error:
                name = _unknown_in(error.fault)
                if name not in _OPTIONAL & body.keys() - left_out:
                    raise
                left_out.add(name)
            except UnicodeEncodeError:
                # Nothing was sent yet.
                if (clean := clean_messages(body)) == body:
                    raise
                body = clean


def _unknown_in(fault: Fault) -> str:
    if _UNSUPPORTED.intersection(fault.words):
        return fault.param
    # Servers that check the fields of a body strictly (Mistral, older vLLM) name it in their message alone.
    return "stream_options" if fault.status in _BAD_REQUEST and "stream_options" in fault.message else ""
