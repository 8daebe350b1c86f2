"""What goes wrong with expressions: outside as errors with field and position, inside as faults without the field."""

from __future__ import annotations

from headrace.model.errors import InvalidInputError


class ExpressionError(InvalidInputError):
    """The expression cannot be evaluated. Correct it at the named position, or the data it reads."""

    code = "expression"

    def __init__(self, field: str, rule: str, value: object = None, position: int | None = None) -> None:
        super().__init__(field, rule, value)
        #: The character of the text at which it goes wrong, from 1; None where it is no single one.
        self.position = position


class ExpressionSyntaxError(ExpressionError):
    """The expression is not written as the language has it. Correct it at the named position."""


class ExpressionLimitError(ExpressionError):
    """The expression needs more steps, depth, size or time than one may have. Split the work over several nodes."""

    code = "expr_limit"


class Fault(Exception):
    """Something is wrong at an offset of the source; whoever knows the field makes an error of it."""

    kind: type[ExpressionError] = ExpressionError

    def __init__(self, rule: str, offset: int | None = None, end: int | None = None) -> None:
        super().__init__(rule)
        self.rule, self.offset = rule, offset
        #: Where the piece of source ends that the rule speaks of, if it is to be shown.
        self.end = end

    def error(self, field: str, text: str) -> ExpressionError:
        """Return the error for a text that stands in `field`."""
        if self.offset is None:
            return self.kind(field, f"cannot be evaluated: {self.rule}", text)
        position = self.offset + 1
        source = "" if self.end is None else f"`{_shortened(text[self.offset : self.end])}` "
        return self.kind(field, f"is wrong at character {position}: {source}{self.rule}", text, position)


def _shortened(source: str) -> str:
    source = source.strip()
    return source if len(source) <= 60 else source[:59] + "…"


class SyntaxFault(Fault):
    """The source is not an expression of the language."""

    kind = ExpressionSyntaxError


class LimitFault(Fault):
    """The source, or its evaluation, goes beyond a limit."""

    kind = ExpressionLimitError
