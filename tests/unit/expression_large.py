"""Expressions over very large data: it is in the items already, and no expression may go through it for long."""

from __future__ import annotations

from headrace.model.expressions.scope import Scope

_TEN, _SIXTY = 10_000_000, 60_000_000


def large_scope() -> Scope:
    """Return texts of 10 to 60 MB, wide ones among them, and lists of a million."""
    record = {
        **{"ten": "a" * _TEN, "same": "b" + "a" * (_TEN - 1), "sixty": "a" * _SIXTY, "long": "a" * 9_000_000 + "b"},
        **{"wide": "😀" + "a" * _TEN, "other": "😀" + "a" * (_TEN - 1) + "b", "marks": "%41" * 3_000_000},
        **{"json": '["' + "\\ud83d\\ude00" * 1_000_000 + '"]', "near": "a" * 900_000, "part": "a" * 4_000 + "b"},
        **{"kept": "€" + "a" * 240_000, "names": [f"n{n}" for n in range(1_000_000)], "many": [1] * 1_000_000},
        **{"half": list(range(300_000)), "texts": [f"{n}" + "a" * 5_000_000 for n in range(4)], "o": {"a": 1}},
    }
    return Scope(item={"json": record})


def _often(source: str, count: int, sign: str = "||") -> str:
    return f" {sign} ".join([source] * count)


# fmt: off
#: What went through more than it may have, in time or in memory, or could.
LARGE = (
    "$json.ten.includes($json.long)", _often("$json.ten.includes($json.part)", 20), "$json.wide.includes($json.long)",
    _often("$json.wide.includes($json.long)", 8), "$json.sixty.includes('aaaaaaab')", "$json.sixty.indexOf('b')",
    "$json.sixty.lastIndexOf('b')", "$json.sixty.split('b').length", "$json.sixty.split('a').length",
    "$json.sixty.split('').length", "$json.sixty.replaceAll('aaaaaaaab', 'c').length", "$json.ten.replace('b', '😀')",
    "$json.near.replace('b', '😀').length", "$json.near.replaceAll($json.kept, '')", "$json.near.includes($json.kept)",
    "$json.kept.includes($json.near)", "$json.kept.split($json.near).length", "$json.kept.lastIndexOf($json.near)",
    _often("$json.near.includes('aaaaaaab')", 60), _often("$json.near.includes($json.part)", 60),
    _often("$json.near.lastIndexOf($json.part) > 0", 60), _often("$json.near.split('b').length > 1", 60),
    _often("$json.near.replaceAll('b', 'c').length < 0", 60), _often("$json.wide.startsWith($json.ten)", 60),
    _often("$json.ten.startsWith($json.ten)", 60, "&&"), _often("$json.ten.endsWith($json.ten)", 60, "&&"),
    _often("$json.ten == $json.same", 60), _often("$json.ten >= $json.same", 60), _often("$json.wide > $json.ten", 60),
    _often("$json.wide === $json.other", 60), _often("$json.ten in $json.o", 20), _often("$json.o[$json.sixty]", 20),
    _often("$json.o.has($json.sixty)", 20), "$json.o.pick($json.texts)", "$json.o.omit($json.names)",
    "$json.o.pick($json.names)", "$json.texts.unique().length", "$json.texts.sort().length", "$json.texts.join('')",
    "$json.texts.includes('b')", "$json.names.unique().length", "$json.names.sort()", "$json.names.flat()",
    "$json.half.flat().length", "$json.half.flat(9).length", "$json.half.includes(-1)", "$json.half.first(3e5)",
    "$json.many.sum()", "$json.many.lastIndexOf(2)", "$json.many.count(1)", "$json.many === $json.many",
    "$json.many.toString()", "$json.many.chunk(1)", "$json.many.reverse()", "$json.many.concat(1)", "$json.many.max()",
    "$json.names.where('a', 1)", "$json.names.pluck('a')", "$json.names.compact()", "JSON.stringify($json.names)",
    "JSON.stringify($json.sixty)", "JSON.parse($json.json)", "JSON.parse($json.sixty)", "$json.marks.urlDecode()",
    "encodeURIComponent($json.sixty)", "$json.sixty.base64Encode()", "$json.sixty.base64Decode()",
    "$json.sixty.toUpperCase()", "$json.wide.toUpperCase()", "$json.wide.toTitleCase()", "$json.sixty.trim()",
    "$json.sixty.substring(1)", "$json.sixty.slice(1)", "$json.sixty.reverse()", "$json.sixty.repeat(2)",
    "$json.sixty.concat('a')", "$json.sixty + 'a'", "'x' + $json.sixty", "`${$json.sixty}${$json.wide}`",
    "[$json.sixty]", "{a: $json.names}", "$json.sixty.padEnd(7e7)", "$json.sixty * 1", "$json.sixty.toInt()",
    "$json.sixty.toDateTime()", "$now.toFormat($json.sixty)", "$json.sixty.isEmpty()", "!$json.names", "$json.names[5]",
)
#: What is only passed on, or looked at in one place, costs nothing.
FREE = (
    "$json.ten", "$json.names", "$json", "$json.sixty.length", "$json.names.length", "$json.names[999999]",
    "$json.sixty[5]", "$json.sixty.substring(5, 9)", "$json.sixty.startsWith('aaa')", "$json.texts[0]",
    "$json.sixty ? 1 : 2", "($json.missing ?? $json.sixty).length", "$json.texts.length > 2 && $json.o.a == 1",
    "$json.sixty === $json.ten", "$json.near.includes('b')", "$json.near.split('b').length", "$json.names.at(-1)",
)
