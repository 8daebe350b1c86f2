"""The listed functions: each does what its example says, and what JavaScript and n8n would, at the edges too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headrace.model.expressions.errors import ExpressionError
from headrace.model.expressions.evaluation import evaluate
from headrace.model.expressions.functions.listing import Function
from headrace.model.expressions.functions.table import FUNCTIONS, TABLES
from headrace.model.expressions.scope import Scope

SCOPE = Scope(
    item={"json": {"rows": [{"n": 2, "t": "b"}, {"n": 1, "t": "a"}, {"t": "c"}], "text": "Größe"}},
    now=datetime(2026, 3, 1, 9, 5, 7, 890_000, tzinfo=UTC),
)
BERLIN = Scope(now=datetime(2026, 3, 28, 12, 30, tzinfo=ZoneInfo("Europe/Berlin")))


def value(source: str, scope: Scope = SCOPE) -> Any:
    """Evaluate the source of one expression."""
    return evaluate(f"={{{{ {source} }}}}", scope)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_the_example_of_a_function_is_true(function: Function) -> None:
    """What the reference shows of a function is what it gives; a function has a description."""
    found = value(function.example)
    assert (found, type(found)) == (function.result, type(function.result))
    assert function.description.endswith(".")


def test_no_name_is_listed_twice() -> None:
    """A name means one function, whichever table it is in."""
    assert sum(len(table.functions) for table in TABLES) == len(FUNCTIONS)


def test_a_function_stands_before_the_brackets_or_behind_a_dot() -> None:
    """`f(a, b)` and `a.f(b)` are the same; names with a dot or a capital stand only before."""
    assert value("padStart('7', 3, '0')") == value("'7'.padStart(3, '0')") == "007"
    assert value("[1, 2].max()") == value("Math.max([1, 2])") == 2
    with pytest.raises(ExpressionError, match="no function `Number`"):
        value("'1'.Number()")


TEXTS = [
    ("'straße'.toUpperCase()", "STRASSE"),
    ('"it\'s ÄGE".toTitleCase()', "It's Äge"),
    ("'ODYSSEUS ΟΔΥΣΣΕΥΣ'.toLowerCase()", "odysseus οδυσσευς"),
    ("'a,b,c'.split(',', 2)", ["a", "b"]),
    ("'abc'.split('')", ["a", "b", "c"]),
    ("'abc'.split()", ["abc"]),
    ("''.split(',')", [""]),
    ("'a.b'.replaceAll('.', '$&')", "a$&b"),
    ("'aaa'.replace('a', '')", "aa"),
    ("'abc'.substring(2, 0)", "ab"),
    ("'abc'.substring(-5)", "abc"),
    ("'abc'.slice(-2)", "bc"),
    ("'abc'.slice(1, -1)", "b"),
    ("'abc'.at(-1)", "c"),
    ("'abc'.at(5)", None),
    ("'ab'.repeat(0)", ""),
    ("'ab'.padStart(7, 'xyz')", "xyzxyab"),
    ("'ab'.padEnd(1)", "ab"),
    ("'ab'.padEnd(5, '')", "ab"),
    ("'äöü€😀'.length", 5),
    ("'äöü€😀'.reverse()", "😀€üöä"),
    ("$json.text.toUpperCase()", "GRÖSSE"),
    ("'a.b.c'.lastIndexOf('x')", -1),
    ("'abcabc'.lastIndexOf('bc')", 4),
    ("'abc'.lastIndexOf('')", 3),
    ("'abc'.indexOf('')", 0),
    ("'ab'.concat(1, null, ['x', 2])", "ab1x,2"),
    ("encodeURIComponent('ä/?&=+ ~')", "%C3%A4%2F%3F%26%3D%2B%20~"),
    ("'%C3%A4+'.urlDecode()", "ä+"),
    ("'ä€'.base64Encode().base64Decode()", "ä€"),
    ("(1).toString() + String(null) + String([1, 2]) + String({a: 1})", '11,2{"a":1}'),
]
LISTS = [
    ("[10, 9, 1].sort()", [1, 9, 10]),
    ("['b', null, 2, 'a', 1].sort()", [1, 2, "a", "b", None]),
    ("$json.rows.sort('n').pluck('t')", ["a", "b", "c"]),
    ("$json.rows.sort('t', 'desc').pluck('t').join('')", "cba"),
    ("[1, '1', 1.0, true, null, null].unique()", [1, "1", True, None]),
    ("[{a: 1, b: 2}, {b: 2, a: 1}, [1], [1]].unique()", [{"a": 1, "b": 2}, [1]]),
    ("[{k: 1, v: 1}, {k: 1, v: 2}].unique('k')", [{"k": 1, "v": 1}]),
    ("[].first()", None),
    ("[].last()", None),
    ("[1, 2, 3].first(2)", [1, 2]),
    ("[1, 2, 3].last(0)", []),
    ("[1, 2, 3].last(9)", [1, 2, 3]),
    ("[1, [2, [3, [4]]]].flat(9)", [1, 2, 3, 4]),
    ("$json.rows.pluck('n')", [2, 1, None]),
    ("[{a: [5, 6]}].pluck('a.1')", [6]),
    ("$json.rows.where('t', 'a').first().n", 1),
    ("$json.rows.where('n', null).length", 1),
    ("$json.rows.where('n', '<', 2).pluck('t')", ["a"]),
    ("$json.rows.where('t', '!=', 'a').length", 2),
    ("[1, '2', 3].sum()", 6),
    ("[0.1, 0.2].sum()", 0.30000000000000004),
    ("[].sum()", 0),
    ("[].average()", None),
    ("Math.min()", None),
    ("Math.max(1, '3', 2)", 3),
    ("[3, 2, 1].includes('3')", False),
    ("[{a: 1}].includes({a: 1})", True),
    ("['a', 'b', 'a'].lastIndexOf('a')", 2),
    ("[1].concat(2, [3, [4]], null)", [1, 2, 3, [4], None]),
    ("[1, 2, 3, 4].slice(-2)", [3, 4]),
    ("[1, 2, 3].count() + ['a', 'b'].count('a')", 4),
    ("[3, 1].reverse()", [1, 3]),
    ("[1, '', null, 0, false].compact()", [1, 0, False]),
    ("['a', null, 1].join()", "a,,1"),
]
OBJECTS = [
    ("Object.keys({a: 1, b: 2}).length", 2),
    ("({b: 1, a: 2}).entries()", [["b", 1], ["a", 2]]),
    ("({a: 1}).merge({a: 2, c: 3})", {"a": 1, "c": 3}),
    ("({a: 1, b: 2, c: 3}).pick(['a', 'c'])", {"a": 1, "c": 3}),
    ("({a: 1, b: 2}).omit('a', 'x')", {"b": 2}),
    ("({a: 1}).hasField('b')", False),
    ("({}).has('__class__')", False),
    ("JSON.stringify('a\"\\n\\u0001ä')", '"a\\"\\n\\u0001ä"'),
    ("JSON.stringify({a: [1, 2.5, true, null], b: {}, c: []})", '{"a":[1,2.5,true,null],"b":{},"c":[]}'),
    ("JSON.stringify({a: [1]}, null, 2)", '{\n  "a": [\n    1\n  ]\n}'),
    ("JSON.stringify($now)", '"2026-03-01T09:05:07.890Z"'),
    ("JSON.parse('[1.0, 1e3, -0, 12345678901234567890, \"\\\\u00e4\"]')", [1, 1000, 0, 1.2345678901234567e19, "ä"]),
    ("'{\"a\": {}}'.parseJson().a", {}),
    ("''.isEmpty() && [].isEmpty() && ({}).isEmpty() && isEmpty(null)", True),
    ("(0).isEmpty()", False),
    ("$ifEmpty(null, 'x') + [].ifEmpty('y')", "xy"),
    ("$if('', 1)", None),
]
NUMBERS = [
    ("Number('  12 ')", 12),
    ("Number('')", 0),
    ("Number(true)", 1),
    ("Number('1e3')", 1000),
    ("parseInt('-7.9xyz')", -7),
    ("parseInt(7.9)", 7),
    ("parseInt('08', 10)", 8),
    ("parseFloat('-1.5e2 m')", -150),
    ("Math.round(2.5)", 3),
    ("Math.round(-2.5)", -2),
    ("(2.5).round()", 3),
    ("(-2.5).round()", -3),
    ("(1.005).round(2)", 1.01),
    ("(1.005).toFixed(2)", "1.00"),
    ("(2.5).toFixed(0)", "3"),
    ("(1234.5).toFixed(2)", "1234.50"),
    ("(-1.5).floor() + (1.2).ceil()", 0),
    ("Math.abs('-3')", 3),
    ("Math.sqrt(2) ** 2 > 2", True),
    ("isNaN('x') && !isNaN('1')", True),
    ("Number.isInteger(4.0)", True),
    ("'true'.toBoolean() && !'0'.toBoolean() && Boolean('0')", True),
]


@pytest.mark.parametrize(("source", "expected"), TEXTS + LISTS + OBJECTS + NUMBERS)
def test_a_function_gives_what_people_expect(source: str, expected: Any) -> None:
    """Edges: nothing, too much, negative positions, mixed kinds."""
    found = value(source)
    assert (found, type(found)) == (expected, type(expected))


DATES = [
    ("$now.plus({days: 1}).toISO()", "2026-03-29T12:30:00.000+02:00"),
    ("$now.plus({hours: 24}).toISO()", "2026-03-29T13:30:00.000+02:00"),
    ("$now.plus(1, 'months').toISODate()", "2026-04-28"),
    ("$now.minus({years: 1, months: 1}).toISODate()", "2025-02-28"),
    ("$now.plus({weeks: 1, minutes: 30}).toFormat('dd.MM. HH:mm')", "04.04. 13:00"),
    ("$today.plus({days: 1}).plus({hours: 2}).toISO()", "2026-03-29T03:00:00.000+02:00"),
    ("$now.startOf('week').toISO()", "2026-03-23T00:00:00.000+01:00"),
    ("$now.startOf('quarter').toISODate()", "2026-01-01"),
    ("$now.startOf('hour').toISO()", "2026-03-28T12:00:00.000+01:00"),
    ("$now.endOf('month').toISO()", "2026-03-31T23:59:59.999+02:00"),
    ("$now.endOf('day').toISO()", "2026-03-28T23:59:59.999+01:00"),
    ("'2026-03-30'.diff('2026-03-28', 'days').days", 2),
    ("'2026-03-30'.diffTo('2026-03-28', 'hours')", 47),
    ("'2026-03-30'.diff('2026-03-28', 'hours').as('hours')", 47),
    ("'2026-05-15'.diffTo('2026-03-15', 'months')", 2),
    ("'2026-03-15'.diffTo('2026-05-15', 'months')", -2),
    ("'2028-01-01'.diffTo('2026-01-01', 'years')", 2),
    ("'2026-02-15'.diffTo('2026-01-01', 'month')", 1.5),
    ("$now.diff($now).milliseconds", 0),
    ("$now.year + '-' + $now.month + '-' + $now.day + ' ' + $now.hour + ':' + $now.minute", "2026-3-28 12:30"),
    ("[$now.weekday, $now.weekNumber, $now.quarter, $now.ordinal, $now.zoneName]", [6, 13, 1, 87, "Europe/Berlin"]),
    ("'2026-07-01'.toDateTime().toISO()", "2026-07-01T00:00:00.000+02:00"),
    ("'2026-07-01T10:00:00Z'.toISO()", "2026-07-01T12:00:00.000+02:00"),
    ("DateTime.fromISO('2026-07-01T10:00').toUTC().toISO()", "2026-07-01T08:00:00.000Z"),
    ("DateTime.fromMillis($now.toMillis()) == $now", True),
    ("DateTime.fromSeconds(0).toISO()", "1970-01-01T01:00:00.000+01:00"),
    ("$now.setZone('America/New_York').toFormat('HH:mm ZZ')", "07:30 -04:00"),
    ("$now.toFormat('yy/M/d H h:mm a')", "26/3/28 12 12:30 PM"),
    ("$now.toFormat('cccc, d LLLL yyyy')", "Saturday, 28 March 2026"),
    ("$now.toFormat(\"EEE 'o''clock' SSS Z ZZZ z WW q\")", "Sat oclock 000 +1 +0100 Europe/Berlin 13 1"),
    ("$now.toFormat('X') == $now.toSeconds()", True),
    ("$now > '2026-03-28T11:29:00Z'", True),
    ("'2026-03-28T12:30' == $now", True),
]


@pytest.mark.parametrize(("source", "expected"), DATES)
def test_dates_follow_the_calendar_of_the_zone(source: str, expected: Any) -> None:
    """Days are those of the calendar, hours those of the clock, also where it is changed to summer time."""
    assert value(source, BERLIN) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'abc'.plus(1, 'days')", 'plus(): needs a date: $now, or an ISO text such as "2026-03-01"'),
        ("$now.plus(1, 'fortnights')", "needs a unit, one of years, quarters, months, weeks, days"),
        ("$now.plus({years: 9000})", "leads beyond the years 2 to 9998"),
        ("$now.plus(1e300, 'days')", "leads beyond the years 2 to 9998"),
        ("$now.toFormat('yyyy-MM-DD')", "does not know `DD` in a pattern"),
        ("$now.setZone('Mars/Crater')", "needs the name of a zone such as Europe/Berlin"),
        ("$now.setZone('../etc/passwd')", "needs the name of a zone"),
        ("$now.days", "a date has no `days`; it has year, quarter, month"),
        ("$now + 1", "+ needs numbers, got a date"),
        ("$now * 2", "* needs numbers, got a date: use plus(), minus() or diff()"),
        ("(1).padStart(3)", "padStart(): needs a text, got a number: use .toString()"),
        ("$json.nothing.trim()", "trim(): needs a text, got null"),
        ("[1, 'x'].sum()", "sum(): needs a number, got the text 'x'"),
        ("[{a: 1}].sort()", "sorts numbers and texts, got an object: name a field to sort by"),
        ("JSON.parse('{')", "JSON.parse(): needs JSON: Expecting property name"),
        ("JSON.parse('NaN')", "NaN is no number"),
        ("JSON.parse('1e999')", "the number is too large"),
        ("JSON.parse('\"\\\\ud800\"')", "without halves of surrogate pairs"),
        ("'%ff'.urlDecode()", "% signs make up UTF-8"),
        ("'/w=='.base64Decode()", "needs Base64 of a text in UTF-8"),
        ("Math.sqrt(-1)", "needs a number that is not negative"),
        ("(1.5).toFixed(21)", "from 0 to 20"),
        ("parseInt('abc')", "needs a text that begins with a number"),
        ("[1].where('a', '~', 1)", "compares with one of == !="),
        ("[1].chunk(0)", "needs a size of at least 1"),
        ("'a'.repeat(-1)", "not negative"),
        ("keys([1])", "keys(): needs an object, got a list"),
        ("[1].includes($input)", "$input is no value"),
    ],
)
def test_a_function_says_what_it_needs(source: str, message: str) -> None:
    """The wrong kind of value is named with the function, and with what to do."""
    with pytest.raises(ExpressionError) as caught:
        value(source)
    assert message in str(caught.value)
