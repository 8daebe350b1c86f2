"""Between Python values and the JSON text of a job: arguments in, results out.

Plain JSON types pass untouched. Other annotations (pydantic models, dataclasses, datetimes …) are validated by
pydantic, which is imported only when a task needs it.
"""

from __future__ import annotations

import inspect
import itertools
import json
import operator
import types
import typing
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence, Sized
from datetime import datetime
from functools import reduce
from typing import Any

from headrace.engine.context import Context
from headrace.model.errors import InvalidInputError
from headrace.model.outcome import Cancel, Done, Fail, Retry, Snooze
from headrace.model.payload import MAX_PAYLOAD_BYTES, encode_json, encode_scalar

#: So many short texts stay below the limit of a payload.
_FEW = 8
_UNIONS = (typing.Union, types.UnionType)
_OUTCOMES = (Done, Snooze, Retry, Fail, Cancel)
_PLAIN = frozenset({str, int, float, bool, dict, list, type(None), Any, object, inspect.Parameter.empty})


def jsonable(value: Any) -> Any:
    """Return what JSON can hold for a value it does not know: models, dataclasses, dates, enums, sets, paths."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, inf_nan_mode="constants")


def is_plain(annotation: Any) -> bool:
    """Whether values of this annotation are JSON as they are."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return annotation in _PLAIN
    if origin is dict:
        # JSON's keys are text: any other key has to be turned back.
        return parts[0] in (str, Any) and is_plain(parts[1])
    return origin in (list, *_UNIONS) and all(is_plain(part) for part in parts)


class TypeCodec:
    """Turns JSON values into one annotated type; a no-op for plain types."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._adapter: Any = None
        self.plain = is_plain(annotation)

    def decode(self, value: Any, *, field: str) -> Any:
        """Return `value` as the annotated type; raises InvalidInputError naming `field`."""
        if self.plain:
            return value
        from pydantic import ValidationError

        if self._adapter is None:
            self._adapter = _adapter(self._annotation, field)
        try:
            return self._adapter.validate_python(value, strict=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in (field, *first["loc"]))
            raise InvalidInputError(where, f"is not valid ({first['msg']})", value) from None


def _adapter(annotation: Any, field: str) -> Any:
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        rule = f"is annotated with a type that cannot be read from JSON ({str(error).splitlines()[0]})"
        raise InvalidInputError(field, rule, annotation) from None


class TaskCodec:
    """Encodes calls of one function and decodes them for its handler; finds where the Context goes."""

    _context_type: type = Context

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        self._codecs: dict[str, TypeCodec] | None = None
        self._context_name: str | None = None
        self._result: TypeCodec | None = None
        self._simple = False
        #: How many positional arguments and no others are known to fit.
        self._positional: frozenset[int] = frozenset()

    def _resolve(self) -> dict[str, TypeCodec]:
        """Resolve annotations on first use: names they refer to may be defined after the task."""
        if self._codecs is None:
            hints = self._annotations()
            self._context_name = next(
                (name for name, kind in hints.items() if name != "return" and _is_context(kind, self._context_type)),
                None,
            )
            self._result = TypeCodec(_result_type(hints.get("return", Any)))
            self._codecs = {
                name: TypeCodec(hints.get(name, Any))
                for name in self._signature.parameters
                if name != self._context_name
            }
            self._simple = self._context_name is None and all(codec.plain for codec in self._codecs.values())
            self._positional = _positional_counts(self._signature_without_context())
        return self._codecs

    def _annotations(self) -> dict[str, Any]:
        """Return the types of the arguments of one job, and of its result."""
        return _hints(self._function)

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, field: str = "arguments") -> str:
        """Return the JSON text of a call. Raises InvalidInputError when the call does not fit the signature."""
        self._resolve()
        if kwargs or len(args) not in self._positional:
            self._check_fit(args, kwargs, field)
        if not kwargs and len(args) <= _FEW and (text := _scalar_call(args)) is not None:
            return text
        return encode_json({"args": args, "kwargs": kwargs}, field=field, default=jsonable)

    def in_order(self, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return keyword arguments in the order of the parameters, and others by name: however a call was written."""
        if len(kwargs) < 2:
            return kwargs
        places = {name: place for place, name in enumerate(self._signature.parameters)}
        return {name: kwargs[name] for name in sorted(kwargs, key=lambda name: (places.get(name, len(places)), name))}

    def _check_fit(self, args: Sequence[Any], kwargs: Mapping[str, Any], field: str) -> None:
        try:
            self._signature_without_context().bind(*args, **kwargs)
        except TypeError as error:
            name = getattr(self._function, "__name__", "task")
            rule = f"do not fit {name}{self._signature} ({error})"
            raise InvalidInputError(field, rule, _shape(args, kwargs)) from None

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool = False) -> dict[str, Any]:
        """Return the JSON values of a call by the names of its parameters, with defaults unless it is `partial`.

        Raises InvalidInputError when the call does not fit the signature.
        """
        self._resolve()
        signature = self._signature_without_context()
        try:
            bound = (signature.bind_partial if partial else signature.bind)(*args, **kwargs)
        except TypeError:
            self._check_fit(args, kwargs, "arguments")
            raise
        if not partial:
            bound.apply_defaults()
        values: dict[str, Any] = json.loads(encode_json(bound.arguments, field="arguments", default=jsonable))
        return values

    def encode_items(self, items: Iterable[Any] | AsyncIterable[Any], *, spread: bool = False) -> Any:
        """Return the JSON texts of one call per item, lazily unless `items` has a length.

        Each item is the one argument, or, with `spread`, a mapping of keyword arguments. Raises InvalidInputError
        naming the position of a wrong item.
        """
        encode = self._encode_spread if spread else self._encode_item
        if isinstance(items, AsyncIterable):
            return _encode_async(items, encode)
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise InvalidInputError("items", "must be a list or another iterable of items", items)
        if isinstance(items, Sized):
            return [encode(index, item) for index, item in enumerate(items)]
        return itertools.starmap(encode, enumerate(items))

    def encode_item(self, index: int, item: Any, *, spread: bool = False) -> str:
        """Return the JSON text of the call of one item; see `encode_items`. Raises InvalidInputError."""
        return self._encode_spread(index, item) if spread else self._encode_item(index, item)

    def _encode_item(self, index: int, item: Any) -> str:
        if 1 in self._positional and (text := _scalar_call((item,))) is not None:
            return text
        return self.encode([item], {}, field=f"item {index}")

    def _encode_spread(self, index: int, item: Any) -> str:
        if not isinstance(item, Mapping):
            raise InvalidInputError(f"item {index}", "must be a mapping of keyword arguments when spread=True", item)
        return self.encode([], item, field=f"item {index}")

    def _signature_without_context(self) -> inspect.Signature:
        if self._context_name is None:
            return self._signature
        kept = [item for name, item in self._signature.parameters.items() if name != self._context_name]
        return self._signature.replace(parameters=kept)

    def decode(self, text: str, context: Context) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments for the handler. Raises InvalidInputError."""
        payload = json.loads(text)
        args, kwargs = payload["args"], payload["kwargs"]
        codecs = self._resolve()
        if self._simple:
            return args, kwargs
        try:
            bound = self._signature_without_context().bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidInputError("arguments", f"do not fit the task ({error})", _shape(args, kwargs)) from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = self._decode_one(codecs[name], name, value)
        if self._context_name is not None:
            context.scheduled_at = _scheduled_at(payload)
            return self._with_context(bound, context)
        return list(bound.args), bound.kwargs

    def _decode_one(self, codec: TypeCodec, name: str, value: Any) -> Any:
        match self._signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return tuple(codec.decode(item, field=name) for item in value)
            case inspect.Parameter.VAR_KEYWORD:
                return {key: codec.decode(item, field=f"{name}.{key}") for key, item in value.items()}
            case _:
                return codec.decode(value, field=name)

    def _with_context(self, bound: inspect.BoundArguments, context: Context) -> tuple[list[Any], dict[str, Any]]:
        assert self._context_name is not None
        whole = inspect.BoundArguments(self._signature, bound.arguments | {self._context_name: context})
        return list(whole.args), whole.kwargs

    def encode_result(self, value: Any, *, most: int = MAX_PAYLOAD_BYTES) -> str:
        """Return the JSON text of a result of at most so many bytes; raises InvalidInputError."""
        return encode_json(value, field="result", default=jsonable, most=most)

    def decode_result(self, value: Any) -> Any:
        """Return a stored result as the type the function is annotated with."""
        self._resolve()
        assert self._result is not None
        return self._result.decode(value, field="result")


def stamp_schedule(text: str, at: datetime) -> str:
    """Return the JSON text of a call with the time of a schedule that it is made for, which its context will name.

    >>> from datetime import UTC
    >>> stamp_schedule('{"args":[],"kwargs":{}}', datetime(2026, 1, 31, 3, tzinfo=UTC))
    '{"args":[],"kwargs":{},"scheduled_at":"2026-01-31T03:00:00+00:00"}'
    """
    return f'{text.rstrip()[:-1]},"scheduled_at":"{at.isoformat()}"}}'


def _scheduled_at(payload: Mapping[str, Any]) -> datetime | None:
    text = payload.get("scheduled_at")
    return None if text is None else datetime.fromisoformat(text)


async def _encode_async(items: AsyncIterable[Any], encode: Callable[[int, Any], str]) -> AsyncIterator[str]:
    index = 0
    async for item in items:
        yield encode(index, item)
        index += 1


def _is_context(annotation: Any, kind: type) -> bool:
    if typing.get_origin(annotation) in _UNIONS:  # `ctx: Context | None = None`, for plain calls
        return any(_is_context(part, kind) for part in typing.get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _result_type(annotation: Any) -> Any:
    """Return the type of the stored result: a return annotation without its outcomes, which are never stored."""
    if annotation in _OUTCOMES:
        return Any
    if typing.get_origin(annotation) not in _UNIONS:
        return annotation
    kept = [part for part in typing.get_args(annotation) if part not in _OUTCOMES]
    if len(kept) == len(typing.get_args(annotation)):
        return annotation
    return reduce(operator.or_, kept) if kept and Done not in typing.get_args(annotation) else Any


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise InvalidInputError("task", f"has an annotation that cannot be resolved ({error})", name) from None


def _scalar_call(args: Sequence[Any]) -> str | None:
    """Return the text of a call with numbers and short texts only, the commonest; None for any other."""
    texts = [encode_scalar(value) for value in args]
    return None if None in texts else f'{{"args":[{",".join(texts)}],"kwargs":{{}}}}'  # type: ignore[arg-type]


def _positional_counts(signature: inspect.Signature) -> frozenset[int]:
    """Return how many positional arguments a call without keywords may have; none where that is not a simple matter."""
    kinds = inspect.Parameter
    parameters = signature.parameters.values()
    if any(one.kind in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL) for one in parameters):
        return frozenset()
    given = [one for one in parameters if one.kind is not kinds.VAR_KEYWORD]
    required = [one for one in given if one.default is kinds.empty]
    return frozenset(range(len(required), len(given) + 1))


def _shape(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    return f"{len(args)} positional, keywords {sorted(kwargs)}"
