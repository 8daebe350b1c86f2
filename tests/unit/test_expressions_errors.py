"""How wrong expressions are refused: with field, position, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.errors import ExpressionError, ExpressionSyntaxError
from headrace.model.expressions.evaluation import check, evaluate, node_names, uses_now
from headrace.model.expressions.scope import NodeView, Scope

SCOPE = Scope(item={"json": {"a": {"b": None}, "text": "abc", "list": [1]}}, execution={"id": "r1"})

#: Source, position within it (from 1), and a part of the message.
SYNTAX = [
    ("1 +", 4, "a value has to stand here, not `}`"),
    ("", 1, "there has to be an expression between {{ and }}"),
    ("1 2", 3, "`2` cannot stand here: an operator or }} has to follow"),
    ("1, 2", 2, "`,` cannot stand here"),
    ("(1", 3, "there has to be a ) here"),
    ("[1", 3, "there has to be a comma or ] here"),
    ("[{a: 1", 8, "there has to be a comma or ] here"),
    ("{a}", 3, "a member needs a value behind a colon"),
    ("{[a]: 1}", 2, "the name of a member has to stand here"),
    ("'abc", 1, "the text that begins with ' has no end"),
    ("`abc", 2, "the text that begins with ` has no end"),
    ("`${1`", 5, "there has to be a } here, which ends ${"),
    ("'\\u12'", 2, "\\u needs hexadecimal digits"),
    ("'\\ud800'", 2, "one half of a surrogate pair"),
    ("'\\u{110000}'", 2, "there is no such character"),
    ("\\u0024json", 1, "does not belong to any word or sign"),
    ("1 ? 2", 6, "the part after ? needs a :"),
    ("x => x", 1, "functions (=>) are not supported: use pluck"),
    ("(x, y) => x", 2, "functions (=>) are not supported"),
    ("() => 1", 1, "functions (=>) are not supported"),
    ("$json.list.map(x => x)", 12, 'map() is not supported: use pluck("field")'),
    ("$json.list.filter(x => x)", 12, 'use where("field", value)'),
    ("$json.list.push(1)", 12, "values cannot be changed"),
    ("$json.a = 1", 9, "nothing can be assigned: write == to compare"),
    ("$json.a++", 8, "nothing can be assigned"),
    ("1; 2", 2, "leave out the ;"),
    ("new Date()", 1, "`new` is not supported: use $now"),
    ("function () {}", 1, "functions are not supported"),
    ("let x = 1", 1, "nothing can be assigned"),
    ("if (1) 2", 1, "write `test ? yes : no`"),
    ("return 1", 1, "an expression is one value"),
    ("delete $json.a", 1, "an expression is one value"),
    ("$json instanceof Object", 7, "`instanceof` is not supported"),
    ("[...$json.list]", 2, "use list.concat(other)"),
    ("/a+/.test('a')", 1, "regular expressions are not supported"),
    ("'a'.replace(/a/g, 'b')", 13, "regular expressions are not supported"),
    ("'a'.match('a')", 5, "regular expressions are not supported"),
    ("1 /* no */", 3, "comments are not supported"),
    ("1 & 2", 3, "operators on bits are not supported"),
    ("~1", 1, "operators on bits are not supported"),
    ("-2 ** 2", 1, "put brackets around the operand"),
    ("0x10", 1, "a number is written in decimal digits"),
    ("10n", 1, "a number is written in decimal digits"),
    ("NaN", 1, "there is no NaN"),
    ("name", 1, "there is no value `name`: a text needs quotes, a field is $json.name"),
    ("$jsn.a", 1, "there is no value `$jsn`: did you mean `$json`?"),
    ("$env.HOME", 1, "$env is not supported: use $vars"),
    ("trim", 1, "`trim` is a function: write trim(…)"),
    ("Math", 1, "`Math` is no value: write Math.name(…)"),
    ("Math.rond(1)", 1, "there is no function `Math.rond`: did you mean `Math.round`?"),
    ("Math.random()", 1, "chance is not supported"),
    ("$json.text.toUpper()", 12, "did you mean `toUpperCase`?"),
    ("$json.text.trim(1)", 12, "trim() takes 1 values, what is before the dot among them, got 2"),
    ("'a'.padStart()", 5, "padStart() takes 2 to 3 values"),
    ("$input.first(1, 2)", 8, "first() takes 1 to 2 values"),
    ("$('X').all(1)", 8, "all() takes 0 values"),
    ("$json.a.b(1)", 9, "there is no function `b`"),
    ("$json['a'](1)", 11, "only listed functions can be called"),
    ("$json.", 7, "the name of a member has to follow the dot"),
    ("$json.1", 6, "`.1` cannot stand here"),
    ("$node[$json.a]", 7, "the name of a node has to be written out in quotes"),
    ("$('A' + 'B')", 7, "the name of a node has to be written out in quotes"),
    ("$items('A', 1)", 13, "leave out the numbers"),
]


@pytest.mark.parametrize(("source", "position", "message"), SYNTAX)
def test_what_is_not_of_the_language_is_refused_where_it_stands(source: str, position: int, message: str) -> None:
    """Checking names the field, the character of the text, the rule and what to write instead."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        check({"url": ["={{" + source + "}}"]}, field="parameters")
    error = caught.value
    assert message in str(error)
    assert str(error).startswith(f"parameters.url[0] is wrong at character {error.position}: ")
    # What has no end is told by where the text or the {{ begins.
    assert error.position == position + (1 if source == "" else 3)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("={{ 1", 2, "{{ has no }}"),
        ("=ok {{ 1 }} and {{ 2", 17, "{{ has no }}"),
        ("={{ 1 } }}", 7, "the expression ends with }} and not with one }"),
        ("={{ 1 }} {{ ) }}", 13, "a value has to stand here, not `)`"),
        ("=é😀 {{ 'x' y }}", 12, "`y` cannot stand here"),
    ],
)
def test_a_template_is_refused_where_it_goes_wrong(text: str, position: int, message: str) -> None:
    """Positions count the characters of the whole text, from 1."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        check(text)
    assert (caught.value.position, message in str(caught.value)) == (position, True)


EVALUATION = [
    ("$json.a.b.c", 1, "`$json.a.b` is null and has no member `c`: write ?. before it"),
    ("1 + $json.x['y']", 5, "`$json.x` is null and has no member `y`"),
    ("$json.x[0]", 1, "`$json.x` is null and has no member that"),
    ("($json.x?.y).z", 2, "`$json.x?.y` is null"),
    ("$json[null]", 1, "what stands in [ ] has to be a name or a number, got null"),
    ("1 + [1]", 5, "+ adds numbers and texts, got a list: use concat() or merge()"),
    ("1 + null", 5, "+ needs numbers, got null: write `?? 0` where it may be missing"),
    ("2 * $json.text", 5, "* needs numbers, got the text 'abc'"),
    ("1 / 0", 5, "/ by zero"),
    ("5 % 0", 5, "% by zero"),
    ("9 ** 9 ** 9", 6, "the result of ** is too large"),
    ("(-8) ** 0.5", 9, "is no number"),
    ("1e308 * 10", 9, "the number is too large"),
    ("-'abc'", 1, "- needs numbers, got the text 'abc'"),
    ("1 < 'abc'", 5, "< compares numbers, texts or dates, got a number and the text 'abc'"),
    ("1 < [1]", 5, "got a number and a list"),
    ("'a' in [1]", 8, "use list.includes(value)"),
    ("$input", 1, "$input is no value: use one of its members"),
    ("[$('X')]", 2, "$('X') is no value"),
    ("$input.json", 1, "$input has no `json`; it has item, first(), last() and all()"),
    ("$input.trim()", 1, "trim(): is not for $input"),
    ("$execution.resumeUrl", 1, "$execution has no `resumeUrl`; it has id"),
    ("$now", 1, "there is no clock here"),
    ("$('X').item.json", 1, "there are no items of the node 'X': the node 'X' has not run"),
    ("$('Lost').item.json", 1, "it came from several: use $('Lost').first(), .last() or .all()"),
    ("$('Lost').params", 1, "$('Lost') has no `params`; it has item, json"),
    ("[1].all()", 1, "all(): is for $input and $('Node'), got a list"),
]


def find(name: str) -> NodeView:
    """Return a node whose item is not known; no other one ran."""
    if name == "Lost":
        return NodeView(name, [{"json": {}}], None, "it came from several")
    raise LookupError(f"the node {name!r} has not run")


@pytest.mark.parametrize(("source", "position", "message"), EVALUATION)
def test_what_cannot_be_evaluated_names_the_place(source: str, position: int, message: str) -> None:
    """Evaluation names the field, the character, the piece of source and what to do."""
    scope = Scope(item=SCOPE.item, node=find, execution=SCOPE.execution)
    with pytest.raises(ExpressionError) as caught:
        evaluate({"body": ["={{" + source + "}}"]}, scope, field="parameters")
    error = caught.value
    assert message in str(error)
    assert not isinstance(error, ExpressionSyntaxError)
    assert str(error).startswith(f"parameters.body[0] is wrong at character {position + 3}: ")
    assert (error.code, error.position) == ("expression", position + 3)


def test_without_items_the_current_one_is_missed() -> None:
    """`$json` where a node has no items says so."""
    with pytest.raises(ExpressionError, match="there is no current item here: the node has no input items"):
        evaluate("={{ $json.a }}", Scope())


@pytest.mark.parametrize("use", [check, node_names, uses_now, lambda value: evaluate(value, SCOPE)])
def test_every_entry_refuses_bad_syntax(use: Any) -> None:
    """All public functions raise the same error, which is an error of input."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        use("={{ 1 + }}")
    assert isinstance(caught.value, InvalidInputError)


@pytest.mark.parametrize(
    "source",
    ["encodeURIComponent($json.s)", "$json.s.base64Encode()", "decodeURIComponent($json.s)", "$json.s.toDateTime()"],
)
def test_halves_of_surrogate_pairs_are_an_error_of_the_expression(source: str) -> None:
    """What cannot become bytes is told as such, with its place."""
    with pytest.raises(ExpressionError, match="is wrong at character"):
        evaluate(f"={{{{ {source} }}}}", Scope(item={"json": {"s": "a\ud800"}}))


def test_halves_of_surrogate_pairs_are_measured() -> None:
    """A large result with one is measured like any other."""
    scope = Scope(item={"json": {"s": "ä\ud800" * 30_000}})
    assert evaluate("={{ [$json.s] }}", scope) == ["ä\ud800" * 30_000]


def test_data_that_is_no_json_does_not_come_out() -> None:
    """A number that JSON does not have is refused where it is a result."""
    for source in ("$json.n", "[$json.n]", "$json.n + 1", "'abc'[$json.n]", "[$json.n].sort()", "`${$json.n}`"):
        with pytest.raises(ExpressionError, match=r"is no number|is none|too large"):
            evaluate(f"={{{{ {source} }}}}", Scope(item={"json": {"n": float("nan")}}))
