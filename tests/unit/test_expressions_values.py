"""What expressions give: literals, members, operators, other nodes, and texts around them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headrace.model.expressions.errors import ExpressionError
from headrace.model.expressions.evaluation import check, evaluate, node_names, uses_now
from headrace.model.expressions.scope import NodeView, Scope

RECORD = {
    **{"a": {"b": [1, 2, {"c": "deep"}]}, "price": 4, "name": "Ada", "a b": 1, "none": None, "zero": 0, "empty": ""},
    **{"flag": True, "tags": ["x", "y"], "rows": [{"n": 2}, {"n": 10}], "größe": 3, "__class__": "data", "if": 5},
}
ITEMS = ({"json": RECORD, "binary": {"file": {"mimeType": "text/csv"}}}, {"json": {"price": 6}})
OTHER = ({"json": {"x": 1}, "binary": {"b": {"id": "f1"}}}, {"json": {"x": 2}})


def find(name: str) -> NodeView:
    """Return what there is of other nodes."""
    if name == "Lost":
        return NodeView(name, OTHER, None, "the item came from several")
    if name == "One":
        return NodeView(name, ({"json": {"x": 7}},), None, "the item came from several")
    if name != "Other":
        raise LookupError(f"the node {name!r} has not run")
    return NodeView(name, OTHER, OTHER[1])


SCOPE = Scope(
    item=ITEMS[0],
    index=3,
    items=ITEMS,
    node=find,
    variables=MappingProxyType({"region": "eu"}),
    now=datetime(2026, 3, 1, 9, 5, tzinfo=ZoneInfo("Europe/Berlin")),
    execution={"id": "r1", "mode": "manual"},
    workflow={"name": "Flow"},
    previous={"name": "Before"},
    round=2,
)


def value(source: str) -> Any:
    """Evaluate the source of one expression."""
    return evaluate(f"={{{{ {source} }}}}", SCOPE)


LITERALS = [
    ("1", 1),
    ("1.50", 1.5),
    (".5", 0.5),
    ("1e3", 1000),
    ("9007199254740993", 9007199254740992),
    ("'it\\'s'", "it's"),
    ('"a\\n\\t\\u0041\\x42\\u{1F600}"', "a\n\tAB😀"),
    ("'\\ud83d\\ude00'", "😀"),
    ("`a${1 + 1}b${`c${'d'}`}`", "a2bcd"),
    ("`$5 \\${x} \\``", "$5 ${x} `"),
    ("``", ""),
    ("true", True),
    ("undefined", None),
    ("[1, 'a', [null],]", [1, "a", [None]]),
    ("{a: 1, 'b c': {d: 2}, 3: 4, if: 5,}", {"a": 1, "b c": {"d": 2}, "3": 4, "if": 5}),
    ("{a: 1, a: 2}", {"a": 2}),
    ("({})", {}),
    ("Math.PI", 3.141592653589793),
]
MEMBERS = [
    ("$json.a.b[1]", 2),
    ("$json.a.b[2].c", "deep"),
    ('$json["a b"]', 1),
    ("$json['a']['b'].length", 3),
    ("$json.größe", 3),
    ("$json.if", 5),
    ("$json.__class__", "data"),
    ("$json.missing", None),
    ("$json.a.constructor", None),
    ("$json.a.b[9]", None),
    ("$json.a.b[-1]", None),
    ("$json.a.b[0.5]", None),
    ("$json.a.b['0']", None),
    ("$json.a.b.name", None),
    ("$json.name[0]", "A"),
    ("$json.name.length", 3),
    ("$json.name.__class__", None),
    ("$json.price.real", None),
    ("$json.missing?.x", None),
    ("$json.missing?.x.y[0].trim()", None),
    ("$json.missing?.[0]", None),
    ("$json.missing?.trim()", None),
    ("$json.name?.length", 3),
    ("({__proto__: {x: 1}}).x", None),
    ("({__proto__: 1}).__proto__", 1),
    ("true?.5:1", 0.5),
]
OPERATORS = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("7 - 2 - 1", 4),
    ("2 ** 3 ** 2", 512),
    ("6 / 2", 3),
    ("1 / 4", 0.25),
    ("-7 % 3", -1),
    ("'a' + 1", "a1"),
    ("1 + 'a'", "1a"),
    ("'a' + null + true + [1, 2] + 1.0", "atrue1,21"),
    ("'5' * '2'", 10),
    ("'5' - 2", 3),
    ("+'5'", 5),
    ("-'5'", -5),
    ("- -1", 1),
    ("true + 1", 2),
    ("'5' + 2", "52"),
    ("2 ** 53 + 0", 9007199254740992),
    ("1 == '1'", True),
    ("1 === '1'", False),
    ("1 === 1.0", True),
    ("1 == true", True),
    ("1 === true", False),
    ("[1] === [true]", False),
    ("null == undefined", True),
    ("null == 0", False),
    ("'' == 0", True),
    ("'a' != 'b'", True),
    ("[1, {a: 2}] == [1, {a: 2}]", True),
    ("{a: 1} !== {a: 1, b: 2}", True),
    ("$now == '2026-03-01T08:05:00Z'", True),
    ("'b' > 'a'", True),
    ("'10' > 9", True),
    ("'10' > '9'", False),
    ("2 <= 2", True),
    ("$json.missing > 5", False),
    ("null >= 0", False),
    ("$now > '2026-02-28'", True),
    ("$now < $today", False),
    ("1 && 'a'", "a"),
    ("0 && 1 / 0", 0),
    ("1 || 1 / 0", 1),
    ("'' || 'b'", "b"),
    ("0 ?? 1", 0),
    ("null ?? 1", 1),
    ("null ?? null ?? 3", 3),
    ("false || null ?? 4", 4),
    ("true || false && false", True),
    ("![]", False),
    ("!''", True),
    ("!!$json.zero", False),
    ("1 ? 'a' : 'b'", "a"),
    ("0 ? 1 : '' ? 2 : 3", 3),
    ("1 ? 0 ? 1 : 2 : 3", 2),
    ("'price' in $json", True),
    ("'x' in {}", False),
    ("1 < 2 == true", True),
    ("typeof 'a'", "string"),
    ("typeof $json.missing === 'undefined'", True),
    ("typeof [] + typeof 1 + typeof true", "objectnumberboolean"),
]
ROOTS = [
    ("$json.price", 4),
    ("$binary.file.mimeType", "text/csv"),
    ("$input.item.json.name", "Ada"),
    ("$input.first().json.price", 4),
    ("$input.last().json.price", 6),
    ("$input.all().length", 2),
    ("$input.all()[1].json.price", 6),
    ("$input.all().pluck('json.price').sum()", 10),
    ("$node['One'].json.x", 7),
    ("$node.One.json.x", 7),
    ("$node['Other'].item.json.x", 2),
    ("$('Other').json.x", 2),
    ("$('Other').item.json.x", 2),
    ("$('Other').first().json.x", 1),
    ("$('Other').first().binary.b.id", "f1"),
    ("$('Other').last().json", {"x": 2}),
    ("$('Other').all()[0].json.x", 1),
    ("$('Other').pairedItem().json.x", 2),
    ("$('Other').itemMatching(0).json.x", 1),
    ("$('Other').itemMatching(7)", None),
    ("$('Other').isExecuted", True),
    ("$('Absent').isExecuted", False),
    ("$('Lost').first().json.x", 1),
    ("$items('Other').length", 2),
    ("$items('Other', 0, 0)[1].json.x", 2),
    ("$vars.region", "eu"),
    ("$vars.missing", None),
    ("$itemIndex + $position", 6),
    ("$runIndex", 2),
    ("$execution.id + $execution.mode", "r1manual"),
    ("$workflow.name", "Flow"),
    ("$prevNode.name", "Before"),
    ("$now", "2026-03-01T09:05:00.000+01:00"),
    ("$today", "2026-03-01T00:00:00.000+01:00"),
    ("[$now, {d: $today}]", ["2026-03-01T09:05:00.000+01:00", {"d": "2026-03-01T00:00:00.000+01:00"}]),
]


@pytest.mark.parametrize(("source", "expected"), LITERALS + MEMBERS + OPERATORS + ROOTS)
def test_an_expression_has_its_value(source: str, expected: Any) -> None:
    """Each source gives its value, of the very type that JSON would have."""
    found = value(source)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(("index", "x", "binary"), [(0, 1, {"b": {"id": "f1"}}), (1, 2, {})])
def test_a_node_in_brackets_has_the_item_of_the_same_number(index: int, x: int, binary: dict[str, Any]) -> None:
    """`$node["X"]` goes by the number of the current item, `$('X').item` by where that came from."""
    scope = Scope(item=ITEMS[0], index=index, items=ITEMS, node=find)
    texts = ["={{ $node['Other'].json.x }}", '={{ $node["Other"].binary }}', "={{ $('Other').item.json.x }}"]
    assert evaluate(texts, scope) == [x, binary, 2]


def test_a_node_in_brackets_without_an_item_of_the_number_is_told() -> None:
    """Nothing is guessed where another node has fewer items, but for a single one."""
    with pytest.raises(ExpressionError, match=r"'Other' has 2 items, and this is item 3, .* use \$\('Other'\)\.item"):
        value("$node['Other'].json.x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{ 1 }}", "{{ 1 }}"),
        ("=", ""),
        ("=plain", "plain"),
        ("={{ 1 }}", 1),
        ("={{1}}", 1),
        ("= {{ 1 }}", " 1"),
        ("={{ 1 }}{{ 2 }}", "12"),
        ("=Dear {{ $json.name }}, {{ $json.price * 2 }}", "Dear Ada, 8"),
        ("=a{{ null }}b{{ $json.missing }}c", "abc"),
        ("=tags: {{ $json.tags }}", "tags: x,y"),
        ("=object: {{ $json.a }}", 'object: {"b":[1,2,{"c":"deep"}]}'),
        ("=rows: {{ $json.rows }}", 'rows: [{"n":2},{"n":10}]'),
        ("=on {{ $today }}", "on 2026-03-01T00:00:00.000+01:00"),
        ("={{ '}}' }}", "}}"),
        ("={{ `}}${ '}}' }` }}", "}}}}"),
        ('={{ "a\\"}}" }}', 'a"}}'),
        ("={{ {a: {b: 1}}.a }}", {"b": 1}),
        ("={{ {a: {b: 1}} }}", {"a": {"b": 1}}),
        ("={{ {a: {b: 1}}}}", {"a": {"b": 1}}),
        ("=\\{{ not {{ 1 }}", "{{ not 1"),
        ("=one } and }} two", "one } and }} two"),
        ("={{\n  $json.price\n    + 1\n}}", 5),
        ({"a": ["={{ 1 }}", {"b": "=x{{ 2 }}"}], "c": 3}, {"a": [1, {"b": "x2"}], "c": 3}),
        ([], []),
        (None, None),
        (7, 7),
    ],
)
def test_a_text_that_begins_with_an_equals_sign_is_a_template(text: Any, expected: Any) -> None:
    """An expression alone keeps its type, with text around it a text comes out; other values are as they are."""
    found = evaluate(text, SCOPE)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *[(1, "1"), (1.0, "1"), (0.1, "0.1"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-6, "0.000001")],
        *[(1.5e-7, "1.5e-7"), (123456789.125, "123456789.125"), (10**18 + 1, "1000000000000000001"), (-0.5, "-0.5")],
    ],
)
def test_numbers_are_written_as_in_javascript(number: float, text: str) -> None:
    """Whole numbers have no point, and exponents begin where JavaScript's do."""
    assert evaluate("=<{{ $json.n }}>", Scope(item={"json": {"n": number}})) == f"<{text}>"


def test_large_whole_numbers_pass_through_unchanged() -> None:
    """An identifier of nineteen digits is not rounded by being looked up."""
    scope = Scope(item={"json": {"id": 2**63 - 1}})
    assert evaluate(["={{ $json.id }}", "={{ [$json.id] }}", "={{ $json.id === $json.id }}"], scope) == [
        *[2**63 - 1, [2**63 - 1], True]
    ]


def test_mappings_of_the_scope_are_plain_objects() -> None:
    """A scope may hand in read-only mappings and tuples: what comes out is dict and list."""
    item: Mapping[str, Any] = MappingProxyType({"json": MappingProxyType({"a": 1})})
    scope = Scope(item=item, items=(item,), variables=MappingProxyType({"b": 2}))
    found = [
        evaluate(text, scope) for text in ("={{ $json }}", "={{ $input.all() }}", "={{ $vars }}", "={{ $json.a }}")
    ]
    assert [type(one) for one in found] == [dict, list, dict, int]


def test_data_of_the_scope_is_shared_and_never_changed() -> None:
    """A path gives the very object that is there; functions that order or join leave theirs as they were."""
    rows = [{"n": 2}, {"n": 1}]
    scope = Scope(item={"json": {"rows": rows}})
    assert evaluate("={{ $json.rows }}", scope) is rows
    evaluate("={{ $json.rows.sort('n').reverse().concat(1) }}", scope)
    assert rows == [{"n": 2}, {"n": 1}]


def test_names_of_nodes_are_found_wherever_they_stand() -> None:
    """All ways to refer to a node count, deep within other parts too."""
    written = {
        "a": "={{ $json.x ? $('One').item.json.a : [$node[\"Two\"].json, {b: $node.Three.binary}] }}",
        "b": ["=text {{ $items('Four').length + `${$('Five').all()[$('Six').first().json.i]}` }}", "plain $('No')"],
    }
    assert node_names(written) == {"One", "Two", "Three", "Four", "Five", "Six"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("={{ $now }}", True), ("=x {{ [1, $today.day] }}", True), ("={{ DateTime.now() }}", True)],
        *[("={{ Date.now() }}", True), ("={{ $json.now }}", False), ("$now", False), ("={{ '$now' }}", False)],
    ],
)
def test_use_of_the_clock_is_known(text: str, expected: bool) -> None:
    """A value that asks for the time is told from one that does not."""
    assert uses_now({"a": [text]}) is expected


def test_checking_needs_no_data() -> None:
    """What is right in form passes, whatever the data will be."""
    check({"a": ["={{ $json.a.b.c / $('X').item.json.d }}", "=x"], "b": 1})
