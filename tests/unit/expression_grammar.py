"""Hostile expressions in any number: those of the list first, then mixtures of them, and others grown by a grammar."""

from __future__ import annotations

import random
from collections.abc import Iterator

from headrace.model.expressions.functions.table import TABLES
from tests.unit.expression_attack_list import BY_HAND

# fmt: off
NAMES = (
    "a", "b", "c", "d", "e", "rows", "long", "wide", "deep", "secret", "length", "json", "item", "at", "name",
    "call", "__class__", "__dict__", "__init__", "__globals__", "__proto__", "constructor", "prototype", "mro",
    "format", "tzinfo",
)
WORDS = (
    "$json", "$json", "$json", "$now", "$today", "$input", "$vars", "$binary", "$('A')", "$node['A']",
    "$items('A')", "$itemIndex", "$runIndex", "$execution", "$workflow", "$prevNode", "true", "null",
    "undefined", "Math.PI",
)
LITERALS = (
    "0", "1", "-1", "2", "3.5", "1e9", "1e300", "1e-300", "99999999999999999", "''", "'a'", "'ab'", "'days'",
    "'n'", "'t'", "'a.b'", "'1'", "'x'.repeat(99999)", "'€'.repeat(9999)", "'{0}'", "'%s'", "'2026-03-01'",
    "'2026-13-01T'", "[]", "{}", "[1,2,3]", "{a: 1}", "{days: 1}", "[[1],[2,[3]]]", "`t${1}`", "','",
    "'\\u0000'", "'yyyy-MM-dd'", "'>='", "'😀'.repeat(9999)",
)
SIGNS = (
    "+", "-", "*", "/", "%", "**", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "&&", "||", "??", "in",
)
MUTATIONS = (
    "(", ")", "[", "]", "{", "}", "`", "${", "'", '"', "\\", ".", "?.", "=>", "=", ";", ",", "__class__", "$",
    "{{", "}}", "\0", "1e9",
)
#: What functions of a table are mostly made for.
SUITED = {
    "Texts": ("'a,b,c'", "'  Ab '", "$json.long", "$json.wide", "'x'.repeat(200000)", "$json.b", "'%41'", "'aGk='"),
    "Texts, lists and any value": ("'abc'", "$json.c", "$json.rows", "null", "$json.wide", "[[1], [2]]", "{}"),
    "Lists": ("$json.rows", "$json.c", "[3, 1, 2]", "['b', 'a']", "$json.rows.pluck('n')", "$json.long.split('b')"),
    "Objects and JSON": ("$json.secret", "{a: 1, b: [2]}", "$json.d", "$json.json", "'[1, {\"a\": null}]'", "'[]'"),
    "Numbers and truth values": ("1", "-2.5", "1e300", "'12.5'", "$json.a", "$json.big", "true", "0.1"),
    "Dates and times": ("$now", "$today", "'2026-03-29T02:30:00'", "'0001-01-01'", "'9999-12-31'", "1e12", "{days: 2}"),
}
# fmt: on


class Grammar:
    """Grows expressions, most of them well formed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._functions = [(one, SUITED[table.title]) for table in TABLES for one in table.functions.values()]

    def grown(self, depth: int) -> str:
        """Return an expression that is nested at most so deeply."""
        if depth <= 0:
            return self._chance.choice(self._chance.choice((WORDS, LITERALS, LITERALS)))
        return self._chance.choice(
            (self._leaf, self._path, self._operation, self._call, self._method, self._method, self._written)
        )(depth - 1)

    def _leaf(self, depth: int) -> str:
        return self.grown(0)

    def _path(self, depth: int) -> str:
        name = self._chance.choice(NAMES)
        form = self._chance.choice((".{}", "?.{}", "['{}']", "[{}.length]", "?.['{}']"))
        return self.grown(depth) + form.replace("{}", name)

    def _operation(self, depth: int) -> str:
        kind = self._chance.random()
        if kind < 0.1:
            return f"{self._chance.choice(('!', '-', '+', 'typeof '))}({self.grown(depth)})"
        if kind < 0.2:
            return f"({self.grown(depth)} ? {self.grown(depth)} : {self.grown(depth)})"
        return f"({self.grown(depth)} {self._chance.choice(SIGNS)} {self.grown(depth)})"

    def _arguments(self, depth: int, least: int, most: int) -> str:
        count = self._chance.randint(max(0, least), max(0, least, most))
        return ", ".join(self.grown(depth if self._chance.random() < 0.3 else 0) for _ in range(count))

    def _call(self, depth: int) -> str:
        function, suited = self._chance.choice(self._functions)
        given = self._arguments(depth, function.least - 1, (function.most or 3) - 1)
        first = self._chance.choice(suited) if self._chance.random() < 0.7 else self.grown(depth)
        return f"{function.name}({first}{', ' if given else ''}{given})"

    def _method(self, depth: int) -> str:
        function, suited = self._chance.choice(self._functions)
        given = self._arguments(depth, function.least - 1, (function.most or 3) - 1)
        first = self._chance.choice(suited) if self._chance.random() < 0.6 else self.grown(depth)
        return f"({first}){self._chance.choice(('.', '.', '?.'))}{function.name}({given})"

    def _written(self, depth: int) -> str:
        one, other = self.grown(depth), self.grown(depth)
        return self._chance.choice((f"[{one}, {other}]", f"{{a: {one}, 'b': {other}}}", f"`${{{one}}}x${{{other}}}`"))


def attacks(count: int, seed: int = 7) -> Iterator[str]:
    """Yield so many texts to evaluate: those written by hand first, then mixtures and grown ones."""
    chance = random.Random(seed)
    grammar = Grammar(chance)
    for index in range(count):
        if index < len(BY_HAND):
            source = BY_HAND[index]
        else:
            source = chance.choice((_mixed, _mutated, _grown, _grown))(chance, grammar)
        yield f"={{{{ {source} }}}}" if chance.random() < 0.9 else f"=text {{{{{source}}}}} and {{{{ $json.a }}}}"


def _grown(chance: random.Random, grammar: Grammar) -> str:
    return grammar.grown(chance.randint(1, 5))


def _mixed(chance: random.Random, grammar: Grammar) -> str:
    one, other = chance.choice(BY_HAND), chance.choice(BY_HAND)
    return chance.choice(
        (
            f"({one}) + ({other})",
            f"[{one}, {other}]",
            f"`${{{one}}}${{{other}}}`",
            f"({one})[{other}]",
            f"{one}.{other}",
        )
    )


def _mutated(chance: random.Random, grammar: Grammar) -> str:
    source = chance.choice(BY_HAND) if chance.random() < 0.5 else grammar.grown(4)
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(source))
        cut = at + chance.choice((0, 0, 1, 3))
        source = source[:at] + chance.choice(MUTATIONS) + source[cut:]
    return source
