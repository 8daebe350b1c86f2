"""What people write out of habit and the language does not have, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_FUNCTIONS = 'use pluck("field"), where("field", value), sum() and the like'
_BITS = "operators on bits are not supported"
_ASSIGN = "nothing can be assigned: write == to compare, and set fields with a Set node"

#: Signs that are JavaScript's, and not ours.
SIGNS = {
    "=>": f"functions (=>) are not supported: {_FUNCTIONS}",
    **dict.fromkeys(("=", "+=", "-=", "*=", "/=", "%=", "**=", "&&=", "||=", "??=", "<<=", ">>=", "++", "--"), _ASSIGN),
    ";": "an expression is one value, without statements: leave out the ;",
    "...": "... is not supported: use list.concat(other) or object.merge(other)",
    **dict.fromkeys(("&", "|", "^", "~", "<<", ">>", ">>>"), _BITS),
    **dict.fromkeys(("//", "/*"), "comments are not supported: leave them out"),
    "#": "# does not belong to expressions",
    "@": "@ does not belong to expressions",
}
REGEX = "regular expressions are not supported: use includes(), startsWith(), split() or replaceAll() with a text"

#: Words that are JavaScript's, and not ours.
WORDS = {
    "new": "`new` is not supported: use $now, $today or DateTime.fromISO(text) for dates",
    **dict.fromkeys(("function", "async", "await", "class", "this"), f"functions are not supported: {_FUNCTIONS}"),
    **dict.fromkeys(("var", "let", "const"), _ASSIGN),
    **dict.fromkeys(("if", "switch", "case"), "statements are not supported: write `test ? yes : no`"),
    **dict.fromkeys(
        ("for", "while", "do", "return", "throw", "try", "delete", "void", "yield", "import", "with", "debugger"),
        "statements are not supported: an expression is one value",
    ),
    "instanceof": "`instanceof` is not supported: use typeof, or Array.isArray(value)",
    "NaN": "there is no NaN: a result that is no number is an error",
    "Infinity": "there is no Infinity: a result that is too large is an error",
    "$env": "$env is not supported: use $vars",
    "$secrets": "$secrets is not supported: use credentials of the node",
    "$jmespath": "$jmespath is not supported: use pluck() and where()",
    "$fromAI": "$fromAI is not supported: use a node of a model",
    "$evaluateExpression": "a text is never evaluated as an expression",
    "eval": "a text is never evaluated as an expression",
}
#: Functions that are JavaScript's, and not ours.
METHODS = {
    "map": 'map() is not supported: use pluck("field")',
    **dict.fromkeys(
        ("filter", "find", "findIndex", "some", "every"),
        'functions of functions are not supported: use where("field", value), first() and isEmpty()',
    ),
    **dict.fromkeys(("reduce", "forEach", "flatMap"), "functions of functions are not supported: use sum(), join()"),
    **dict.fromkeys(("match", "test", "search", "exec", "matchAll", "extract"), REGEX),
    **dict.fromkeys(("push", "pop", "shift", "unshift", "splice"), "values cannot be changed: use concat() or slice()"),
    **dict.fromkeys(("random", "randomItem", "Math.random"), "chance is not supported: a result has to come out again"),
    **dict.fromkeys(("hash", "toLocaleString", "toLocaleDateString"), "use toFormat() or toString()"),
    "Object.assign": "use object.merge(other)",
}


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return how a name that does not exist is refused.

    >>> unknown("function", "toUpper", ["trim", "toUpperCase"])
    'there is no function `toUpper`: did you mean `toUpperCase`?'
    """
    close = get_close_matches(name[:40], list(known), 1)
    return f"there is no {what} `{name[:40]}`" + (f": did you mean `{close[0]}`?" if close else "")
