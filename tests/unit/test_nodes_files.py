"""Nodes that read, take apart and write files."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from headrace.model.payload import encode_json
from headrace.nodes import extract_from_file, read_binary_files, read_file, write_file
from headrace.nodes.base import NodeError
from headrace.nodes.tables import Dialect, as_records, part_of, read_csv, write_csv
from headrace.nodes.texts import decoded
from tests.unit.node_calls import FakeServices, MemoryFiles, jsons, make_call, rules, run_call, run_type

READ, MANY, EXTRACT, WRITE = read_file.TYPE, read_binary_files.TYPE, extract_from_file.TYPE, write_file.TYPE
FILES = {"in/a.csv": b"x\n1\n", "in/b.csv": b"x\n2\n", "notes.txt": b"hello"}


class Reads:
    """Readers that give what they are told to, and write down what they were asked."""

    def __init__(self, *, pages: Any = (), rows: Any = ()) -> None:
        self.pages, self.rows = list(pages), list(rows)
        self.asked: list[Any] = []

    async def pdf(self, data: bytes, *, password: str | None, max_pages: int | None) -> list[str]:
        """Return the pages."""
        self.asked.append((data, password, max_pages))
        return self.pages

    async def sheet(self, data: bytes, *, name: str | None) -> list[list[Any]]:
        """Return the rows."""
        self.asked.append((data, name))
        return self.rows


def services_of(files: dict[str, bytes] | None = None, readers: Any = None) -> FakeServices:
    """Return services with these files."""
    return FakeServices(files=MemoryFiles(FILES if files is None else files), readers=readers)


async def item_of(services: FakeServices, data: bytes, **json: Any) -> dict[str, Any]:
    """Return an item whose binary member `data` is stored, beside another one."""
    kept = await services.files.put(data, name="a", mime="b")
    return {"json": json, "binary": {"data": kept, "other": {"id": "o"}}}


async def extract(data: bytes, parameters: dict[str, Any], readers: Any = None) -> list[dict[str, Any]]:
    """Return the items that a file becomes."""
    services = services_of(readers=readers)
    [found] = await run_type(EXTRACT, parameters, [await item_of(services, data, id=1)], services=services)
    return found


async def test_files_become_binary_data() -> None:
    """Each file that the pattern finds is an item with its facts, and with a reference in place of its bytes."""
    services = services_of()
    [found] = await run_type(READ, {"fileSelector": "in/*.csv"}, [{}], services=services)
    facts = {"fileName": "a.csv", "mimeType": "text/csv", "fileExtension": "csv", "fileSize": 4}
    assert found[0]["json"] == {**facts, "filePath": "in/a.csv"}
    assert found[0]["binary"]["data"] == {"id": "blob-0", **facts}
    assert [item["json"]["filePath"] for item in found] == ["in/a.csv", "in/b.csv"]
    assert services.files.data == {"blob-0": b"x\n1\n", "blob-1": b"x\n2\n"}


async def test_facts_and_the_name_of_the_member_may_be_given() -> None:
    """Options say otherwise what is not to be told from the file's name."""
    options = {"dataPropertyName": "doc", "fileName": "x.bin", "mimeType": "a/b", "fileExtension": "dat"}
    parameters = {"operation": "read", "fileSelector": "notes.txt", "options": options}
    [[item]] = await run_type(READ, parameters, [{}], services=services_of())
    facts = {"fileName": "x.bin", "mimeType": "a/b", "fileExtension": "dat", "fileSize": 5}
    assert item["binary"] == {"doc": {"id": "blob-0", **facts}}


async def test_the_older_nodes_that_read_are_understood() -> None:
    """One reads a file into its item; the other reads files once, however many items there are."""
    given = {"json": {"id": 1}, "binary": {"other": {"id": "o"}}}
    [[item]] = await run_type(READ, {"filePath": "notes.txt"}, [given], services=services_of(), version=1)
    assert item["json"] == {"id": 1}
    assert set(item["binary"]) == {"other", "data"}

    parameters = {"fileSelector": "in/*", "dataPropertyName": "doc"}
    [found] = await run_type(MANY, parameters, [{}, {}], services=services_of())
    assert [(item["json"], set(item["binary"]), item["pairedItem"]) for item in found] == [
        ({}, {"doc"}, {"item": 0})
    ] * 2


async def test_files_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is an error always, a pattern where the version says so; a pattern finds no more than its limit."""
    with pytest.raises(NodeError, match=r"none\.txt"):
        await run_type(READ, {"fileSelector": "none.txt"}, [{}], services=services_of(), version=1)
    assert await run_type(READ, {"fileSelector": "*.xyz"}, [{}], services=services_of(), version=1) == [[]]
    with pytest.raises(NodeError, match="finds no file"):
        await run_type(READ, {"fileSelector": "*.xyz"}, [{}], services=services_of())
    monkeypatch.setattr(read_file, "MOST_FILES", 1)
    with pytest.raises(NodeError, match="more than 1 files"):
        await run_type(READ, {"fileSelector": "in/*"}, [{}], services=services_of())


@pytest.mark.parametrize(
    ("parameters", "reads", "writes"),
    [
        ({"operation": "read", "fileSelector": "a"}, True, False),
        ({"fileSelector": "a"}, True, False),
        ({"operation": "write", "fileName": "a"}, False, True),
        ({"fileName": "a"}, True, True),
        ({"operation": "delete"}, True, False),
    ],
)
def test_two_types_share_a_name_by_their_operation(parameters: Any, reads: bool, writes: bool) -> None:
    """What reads and writes files is one node elsewhere; it reads unless told."""
    assert (READ.fits(parameters), WRITE.fits(parameters)) == (reads, writes)


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (READ, {}, ["fileSelector: must be a path"]),
        (READ, {"operation": "delete", "fileSelector": "a"}, ["operation: must be one of read"]),
        (MANY, {}, ["fileSelector: must be a path"]),
        (EXTRACT, {}, []),
        (EXTRACT, {"operation": "html"}, ['operation: "html" is not supported: save the table as CSV']),
        (EXTRACT, {"operation": "rtf"}, ['operation: "rtf" is not supported']),
        (EXTRACT, {"operation": "fromIcs"}, ['operation: "fromIcs" is not supported']),
        (EXTRACT, {"operation": "zip"}, ["operation: must be one of csv"]),
        (EXTRACT, {"operation": "xls", "options": {"rawData": True}}, ["options.rawData: must be off"]),
        (EXTRACT, {"operation": "xls", "options": {"readAsString": True}}, ["options.readAsString: must be off"]),
        (EXTRACT, {"options": {"keepSource": "all"}}, ["options.keepSource: must be one of json"]),
        (WRITE, {}, ["fileName: must be the path"]),
        (WRITE, {"fileName": "a", "format": "xlsx"}, ['format: "xlsx" is not supported: use csv']),
        (WRITE, {"fileName": "a", "format": "text"}, ["text: must be the text"]),
        (WRITE, {"fileName": "a", "format": "json", "options": {"append": True}}, ["options.append: must be off"]),
        (WRITE, {"fileName": "={{ $json.a }}", "format": "csv", "options": {"append": True}}, []),
    ],
)
def test_what_files_cannot_be_is_told_before(kind: Any, parameters: Any, words: list[str]) -> None:
    """Operations and options that nobody does are named at the check, with what to do instead."""
    found = rules(kind, parameters)
    assert len(found) == len(words)
    assert all(one.startswith(expected) for one, expected in zip(found, words, strict=True))


@pytest.mark.parametrize(
    ("text", "options", "records"),
    [
        ("a,b\r\n1,\r\n\r\n2,x\r\n", {}, [{"a": "1"}, {"a": "2", "b": "x"}]),
        ("a,b\n1,\n", {"includeEmptyCells": True}, [{"a": "1", "b": ""}]),
        ("\ufeffa;b\n1;2\n", {"delimiter": ";"}, [{"a": "1", "b": "2"}]),
        ("1,2\n3,\n", {"headerRow": False}, [{"row": ["1", "2"]}, {"row": ["3"]}]),
        ("# one\n# two\na\n1\n", {"fromLine": 3}, [{"a": "1"}]),
        ("a\n1\n", {"fromLine": 9}, []),
        ("a\n1\n2\n3\n", {"maxRowCount": 2}, [{"a": "1"}, {"a": "2"}]),
        ("a\n1\n", {"maxRowCount": -1}, [{"a": "1"}]),
        ("a\n1\n", {"maxRowCount": 0}, []),
        ('a\n"x, y"\n', {}, [{"a": "x, y"}]),
        ('a\n"x ""y"""\n', {}, [{"a": 'x "y"'}]),
        ('a\nx "y\n', {"relaxQuotes": True}, [{"a": 'x "y'}]),
        ("a,a,\n1,2,3\n", {}, [{"a": "1", "a_1": "2", "__EMPTY": "3"}]),
        ("a,b\n1\n2,3\n", {"skipRecordsWithErrors": {"value": {"enabled": True}}}, [{"a": "2", "b": "3"}]),
        ("", {}, []),
    ],
)
async def test_csv_becomes_items(text: str, options: dict[str, Any], records: list[Any]) -> None:
    """One for each record, by the names of the header; options say otherwise."""
    found = await extract(text.encode(), {"options": options})
    assert jsons(found) == records
    assert all(set(item) == {"json", "pairedItem"} for item in found)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (b"a,b\n1\n", {}, "line 2 of the CSV has 1 cells and the first has 2"),
        (b'a\n"x', {}, "no CSV at line 2"),
        (b"a\n\xff\n", {}, "no text in utf-8"),
        (b"a\n\0\n", {}, r"a NUL character \(position 2\)"),
        (b"a\n+2AA-\n", {"encoding": "utf-7"}, r"half of a character, \\ud800 \(position 2\)"),
        (b"a\n", {"encoding": "utf8\0"}, "is not known"),
        (b"a\n", {"encoding": "\ud800"}, "is not known"),
        (b"a\n", {"encoding": "x" * 5_000}, "is not known"),
        (b"a\n", {"encoding": "zip"}, "encoding 'zip' is not known"),
        (b"a\n", {"encoding": "unicode_escape"}, "not one that files have"),
        (b"a\n", {"encoding": "Unicode--Escape"}, "not one that files have"),
        (b"a\n", {"delimiter": "ab"}, r"options\.delimiter must be one character"),
        (
            b"a,b\n1\n2\n", {"skipRecordsWithErrors": {"value": {"enabled": True, "maxSkippedRecords": 1}}},
            "more than 1 records",
        ),
        (b",".join([b"x"] * 4_001), {}, "too large"),
    ],
)  # fmt: skip
async def test_csv_that_cannot_be_read_is_named(data: bytes, options: dict[str, Any], words: str) -> None:
    """The line, the encoding or the option that is wrong."""
    with pytest.raises(NodeError, match=words):
        await extract(data, {"options": options})


async def test_a_cell_of_csv_may_be_long() -> None:
    """Whole texts stand in one; what the library would take at most, unless told, is much less."""
    text = "x" * 1_000_000
    assert jsons(await extract(f"a\n{text}\n".encode(), {})) == [{"a": text}]


async def test_encodings_go_by_the_names_that_flows_have() -> None:
    """Byte order marks are no part of a text."""
    assert decoded("é".encode("latin-1"), "latin1") == "é"
    assert decoded("é".encode("utf-16-le"), "utf16le") == decoded("\ufeffé".encode("utf-16-le"), "UCS-2") == "é"


@pytest.mark.parametrize(
    ("operation", "data", "value"),
    [
        ("text", b"hi", "hi"),
        ("xml", b"<a/>", "<a/>"),
        ("fromJson", b'{"a": [1]}', {"a": [1]}),
        ("binaryToPropery", b"\0\1", base64.b64encode(b"\0\1").decode()),
    ],
)
async def test_a_file_becomes_one_value(operation: str, data: bytes, value: Any) -> None:
    """It stands where it is wanted; JSON and this file are kept where that is asked for, other files always."""
    [item] = await extract(data, {"operation": operation, "destinationKey": "got.it"})
    assert item == {"json": {"got": {"it": value}}, "binary": {"other": {"id": "o"}}, "pairedItem": {"item": 0}}
    for kept, names, others in (("json", {"other"}, {"id": 1}), ("binary", {"data", "other"}, {})):
        [item] = await extract(data, {"operation": operation, "options": {"keepSource": kept}})
        assert (set(item["binary"]), item["json"]) == (names, {**others, "data": value})
    [item] = await extract(data, {"operation": operation, "options": {"keepSource": "both"}})
    assert (set(item["binary"]), item["json"]) == ({"data", "other"}, {"id": 1, "data": value})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "Expecting property name"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[" * 100_000, "nested deeper than 56 levels"),
        (b"[" * 57 + b"]" * 57, r"kept: (\[0\])+… is nested deeper than 56 levels"),
        (b"\xff", "the file is no text"),
        (b'{"a": [0, 1e999]}', r"a\[1\] is a number that JSON has not: inf"),
        (b'{"a": {"b": "x\\u0000"}}', r"a\.b holds a NUL character \(position 1\)"),
        (b'[["\\ud83d"]]', r"\[0\]\[0\] holds half of a character, \\ud83d \(position 0\)"),
        (b'{"a": {"\\u0000": 1}}', "a name in a holds a NUL character"),
        (b'{"\\udc00": 1}', "a name in the value holds half of a character"),
        (b'"\\u0000"', "the value holds a NUL character"),
        (b"9" * 5_000, "the file is no JSON"),
    ],
)
async def test_what_is_no_json_is_named(data: bytes, words: str) -> None:
    """Damaged text, and whatever no store would keep: numbers, texts, names and nesting, each with its place."""
    with pytest.raises(NodeError, match=words):
        await extract(data, {"operation": "fromJson"})


async def test_json_that_can_be_kept_is_kept() -> None:
    """A whole character of two halves, nesting up to the limit, and any number that is one."""
    value: Any = ["\U0001f600", 1e308, -(10**400), {"é": None}]
    for _ in range(54):
        value = [value]
    [item] = await extract(json.dumps(value).encode(), {"operation": "fromJson"})
    assert item["json"] == {"data": value}
    assert encode_json([[[[item]]]], field="outputs")
    for place in (".".join("a" * 40), "[0]" * 200):
        with pytest.raises(
            NodeError, match=r"parameters\.destinationKey .* nested deeper than 56 levels: use fewer steps"
        ):
            await extract(json.dumps(value).encode(), {"operation": "fromJson", "destinationKey": place})


async def test_an_item_without_the_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what the item has; a file too large for JSON is no base64 text."""
    with pytest.raises(NodeError, match=r"no binary data 'doc' \(it has: data, other\)"):
        await extract(b"", {"binaryPropertyName": "doc"})
    with pytest.raises(NodeError, match=r"no binary data 'data' \(it has: none\)"):
        await run_type(EXTRACT, {}, [{}], services=services_of())
    monkeypatch.setattr(extract_from_file, "MAX_BASE64", 1)
    with pytest.raises(NodeError, match="too large for JSON"):
        await extract(b"ab", {"operation": "binaryToPropery"})


async def test_sheets_become_items() -> None:
    """Rows as of CSV, with the kinds of their cells; of a range where one is given."""
    rows = [["id", "name", None], [1, "Ada", None], [None, None, None], [2.5, None, True]]
    readers = Reads(rows=rows)
    found = await extract(b"zip", {"operation": "xlsx", "options": {"sheetName": "One"}}, readers)
    assert jsons(found) == [{"id": 1, "name": "Ada"}, {"id": 2.5, "__EMPTY": True}]
    assert readers.asked == [(b"zip", "One")]
    found = await extract(b"", {"operation": "ods", "options": {"range": "A1:B2"}}, readers)
    assert jsons(found) == [{"id": 1, "name": "Ada"}]
    assert readers.asked[1:] == [(b"", None)]
    with pytest.raises(NodeError, match=r'options\.range must be a number of a row, or as "B2:D10"'):
        await extract(b"", {"operation": "xls", "options": {"range": "A:B"}}, readers)


async def test_the_text_of_a_pdf() -> None:
    """Pages are joined unless told; how many there are is told where all were read."""
    readers = Reads(pages=["one", "two"])
    [item] = await extract(b"pdf", {"operation": "pdf"}, readers)
    assert item["json"] == {"numpages": 2, "numrender": 2, "text": "one\ntwo"}
    options = {"joinPages": False, "maxPages": 2, "password": "key"}
    [item] = await extract(b"pdf", {"operation": "pdf", "options": options}, readers)
    assert item["json"] == {"numrender": 2, "text": ["one", "two"]}
    assert readers.asked == [(b"pdf", None, None), (b"pdf", "key", 2)]


async def test_binary_data_are_written_for_each_item() -> None:
    """The items go on with the name of their file; appending keeps what was there."""
    services = services_of({"out/b": b"0"})
    items = [await item_of(services, data, name=name) for data, name in ((b"1", "a"), (b"2", "b"))]
    parameters = {"operation": "write", "fileName": "=out/{{ $json.name }}", "options": {"append": True}}
    [found] = await run_type(WRITE, parameters, items, services=services)
    assert services.files.files == {"out/a": b"1", "out/b": b"02"}
    assert jsons(found) == [{"name": "a", "fileName": "out/a"}, {"name": "b", "fileName": "out/b"}]
    assert [(set(item["binary"]), item["pairedItem"]["item"]) for item in found] == [
        ({"data", "other"}, n) for n in (0, 1)
    ]


@pytest.mark.parametrize(
    ("parameters", "content"),
    [
        ({"format": "json"}, '[\n  {\n    "a": "é"\n  },\n  {\n    "a": 2,\n    "b": null\n  }\n]\n'),
        ({"format": "csv"}, '"a","b"\r\n"é",\r\n2,\r\n'),
        ({"format": "csv", "options": {"columns": "b, a", "delimiter": ";", "header": False}}, ';"é"\r\n;2\r\n'),
        ({"format": "csv", "options": {"append": True}}, '"é",\r\n2,\r\n'),
        ({"format": "text", "text": "=> {{ $json.a }}"}, "> é\n> 2\n"),
    ],
)
async def test_items_are_written_as_they_are(parameters: dict[str, Any], content: str) -> None:
    """All items of a file go into it together: as JSON, as CSV, or as a line each."""
    services = services_of({})
    given = {"fileName": "x", **parameters}
    [found] = await run_type(WRITE, given, [{"a": "é"}, {"a": 2, "b": None}], services=services)
    assert services.files.files == {"x": content.encode()}
    assert [item["json"]["fileName"] for item in found] == ["x", "x"]


async def test_items_of_several_files_are_kept_apart() -> None:
    """Items keep their order, whichever file they went to."""
    services = services_of({})
    parameters = {"fileName": "={{ $json.to }}", "format": "csv", "options": {"columns": ["n"]}}
    rows = [{"to": "b", "n": 1}, {"to": "a", "n": 2}, {"to": "b", "n": 3}]
    [found] = await run_type(WRITE, parameters, rows, services=services)
    assert services.files.files == {"b": b'"n"\r\n1\r\n3\r\n', "a": b'"n"\r\n2\r\n'}
    assert [item["json"]["n"] for item in found] == [1, 2, 3]


async def test_single_items_can_fail() -> None:
    """Where the node is to go on, those that cannot be written are kept with their errors."""
    services = services_of({})
    items = [{"json": {}}, await item_of(services, b"1")]
    with pytest.raises(NodeError, match="no binary data"):
        await run_type(WRITE, {"fileName": "x"}, items, services=services)
    call = make_call(WRITE, {"fileName": "x"}, items, services=services, strict=False)
    [found] = await run_call(WRITE, call)
    assert [item["pairedItem"] for item in found] == [{"item": 1}]
    [(item, error)] = call.failed
    assert (item["pairedItem"], "no binary data" in str(error)) == ({"item": 0}, True)


async def test_a_text_that_is_none_is_not_written() -> None:
    """Half of a character, which an expression may cut off, is an error of the node."""
    with pytest.raises(NodeError, match=r"half of a character, \\ud83d"):
        await run_type(WRITE, {"fileName": "x", "format": "text", "text": "\ud83d"}, [{}], services=services_of({}))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\ta", "\ra", "\n=1", "\uff1d1"])
def test_no_text_becomes_a_formula(text: str) -> None:
    """Cells and names of columns that a program would compute begin with an apostrophe; numbers stay numbers."""
    [header, row] = read_csv(write_csv([{text: text, "n": -1}], [], delimiter=",", header=True), Dialect())
    assert (header, row) == ([f"'{text}", "n"], [f"'{text}", "-1"])


@pytest.mark.parametrize("text", ["x;=1+1", "x\t=1+1", 'x";"=1+1', "x,=1+1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_no_text_ends_its_cell(text: str, delimiter: str) -> None:
    """Each stands in quotes, so that a program that splits at another delimiter finds none within."""
    written = write_csv([{"a": text, "n": -1.5}], [], delimiter=delimiter, header=False)
    inner = text.replace('"', '""')
    assert written == f'"{inner}"{delimiter}-1.5\r\n'
    assert read_csv(written, Dialect(delimiter)) == [[text, "-1.5"]]


def test_what_stands_bare_is_read_back() -> None:
    """A number with the delimiter in it is quoted; a line of nothing is a record still."""
    assert read_csv(write_csv([{"a": 1.5, "b": 2}], [], delimiter=".", header=False), Dialect(".")) == [["1.5", "2"]]
    assert write_csv([{"a": None}, {"a": ""}], [], delimiter=",", header=False) == '""\r\n""\r\n'


def test_values_of_every_kind_are_cells() -> None:
    """Truth values and what is nested stand as JSON, null as nothing."""
    record = {"a": True, "b": None, "c": {"d": [1]}, "e": 1.5, "f": 'x,\n"y"'}
    [_, row] = read_csv(write_csv([record], [], delimiter=",", header=True), Dialect())
    assert row == ["true", "", '{"d": [1]}', "1.5", 'x,\n"y"']


def test_rows_and_ranges_beyond_the_table() -> None:
    """What is not there is no error."""
    assert part_of([["a", "b"]], "5") == part_of([["a"]], "C3:D4") == []
    assert list(as_records([], header=True, empty=False)) == []
