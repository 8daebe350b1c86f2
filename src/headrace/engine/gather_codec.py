"""The codec of tasks whose handler takes a list: a job holds one entry of the list, and one of the list returned."""

from __future__ import annotations

import functools
import inspect
import json
import operator
import types
import typing
from collections.abc import Sequence
from typing import Any

from headrace.engine.codec import TaskCodec
from headrace.engine.context import GatherContext
from headrace.model.errors import InvalidInputError

_LISTS = (list, Sequence)


class GatherCodec(TaskCodec):
    """Encodes calls with one entry, and decodes them one by one."""

    _context_type = GatherContext

    def _annotations(self) -> dict[str, Any]:
        hints = super()._annotations()
        items = [name for name in self._signature.parameters if hints.get(name) is not GatherContext]
        if len(items) != 1:
            rule = "takes one list, and besides it at most a GatherContext, when it has a batch_size"
            raise InvalidInputError("task", rule, f"{self._name}{self._signature}")
        entries = {name: self._entry(name, kind) for name, kind in hints.items() if name in (*items, "return")}
        if "return" in entries:
            entries["return"] = _without_errors(entries["return"])
        return hints | entries

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "task")

    def _entry(self, name: str, annotation: Any) -> Any:
        """Return the type of an entry of a list."""
        if annotation is Any or annotation in _LISTS:
            return Any
        if typing.get_origin(annotation) not in _LISTS:
            what = "what it returns" if name == "return" else f"its argument {name}"
            rule = f"has a batch_size, so {what} must be a list, such as list[str]"
            raise InvalidInputError("task", rule, f"{self._name}{self._signature}")
        return typing.get_args(annotation)[0]

    def check(self) -> None:
        """Raise InvalidInputError where the function cannot be gathered; names that come later are looked at then."""
        if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in self._signature.parameters.values()):
            rule = "takes one list and no others, when it has a batch_size"
            raise InvalidInputError("task", rule, f"{self._name}{self._signature}")
        try:
            typing.get_type_hints(self._function)
        except NameError:
            return
        self._resolve()

    def decode_item(self, text: str) -> Any:
        """Return the entry that a job holds. Raises InvalidInputError."""
        codecs = self._resolve()
        payload = json.loads(text)
        if self._simple and len(payload["args"]) == 1 and not payload["kwargs"]:
            return payload["args"][0]
        try:
            bound = self._signature_without_context().bind(*payload["args"], **payload["kwargs"])
        except TypeError as error:
            shape = f"{len(payload['args'])} positional, keywords {sorted(payload['kwargs'])}"
            raise InvalidInputError("arguments", f"do not fit the task ({error})", shape) from None
        [(name, value)] = bound.arguments.items()
        return self._decode_one(codecs[name], name, value)

    def call(self, values: list[Any], context: GatherContext) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with these entries."""
        self._resolve()
        names = {name: values if name != self._context_name else context for name in self._signature.parameters}
        whole = inspect.BoundArguments(self._signature, names)
        return whole.args, whole.kwargs


def _without_errors(annotation: Any) -> Any:
    """Return the type of an entry that is no exception instance: those are never stored."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation
    parts = typing.get_args(annotation)
    kept = [part for part in parts if not (isinstance(part, type) and issubclass(part, Exception))]
    return functools.reduce(operator.or_, kept) if kept else Any
