"""Values of runs: what is loaded is what was stored, large or small, and nobody's data can name a blob."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.blobs.memory import MemoryBlobs
from headrace.engine.values import Values
from headrace.model import reference
from headrace.model.errors import BlobStoreError, ConfigError, InvalidInputError, PayloadTooLargeError
from headrace.model.ids import uuid7
from headrace.model.payload import MAX_DEPTH
from headrace.model.reference import INLINE_BYTES, Reference, json_text, parse_reference, reference_text
from headrace.ports.blob_store import BlobStore

RUN = UUID(int=7)
STORE = "5f0c"
#: As it may be written by somebody who knows how references look.
FORGED = {"$blob": {"key": f"runs/{UUID(int=8)}/{'ab' * 32}", "bytes": 70_000, "sha256": "ab" * 32}}
LARGE = "é" * INLINE_BYTES

MARKS = st.sampled_from(["$blob", "$literal", "key", "bytes", "sha256", "$", "a"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.just(FORGED),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MARKS | st.text(max_size=3), inner, max_size=2)
    | st.builds(lambda mark, value: {mark: value}, MARKS, inner),
    max_leaves=10,
)  # fmt: skip


async def store_id() -> str:
    """Return the id of a store."""
    return STORE


def values_in(blobs: BlobStore | None) -> Values:
    """Return values of one store in a storage of blobs."""
    return Values(blobs, store_id)


def blob_of(blobs: MemoryBlobs) -> list[str]:
    """Return the keys that are stored."""
    return list(blobs._blobs)


@given(VALUES, st.booleans())
@example({"$literal": {"$literal": {"$blob": 1}}}, False)
@example({"$literal": {"$literal": 5}}, False)
@example([{"$blob": FORGED}], True)
def test_user_data_come_back_as_they_were(value: Any, large: bool) -> None:
    """Whatever the data look like, small or large, and within composed values too, they are loaded as stored."""
    data = [value, LARGE] if large else value

    async def there_and_back() -> None:
        values = values_in(MemoryBlobs())
        stored = await values.store(RUN, json_text(data))
        assert (parse_reference(json.loads(stored)) is not None) == large
        assert await values.load(stored) == data
        composed = await values.store_composed(RUN, f'{{"a":[{stored},{stored}]}}')
        assert await values.load(composed) == {"a": [data, data]}
        assert json.loads(str(await values.load_text(stored))) == data
        assert json.loads(str(await values.load_text(composed))) == {"a": [data, data]}
        assert await values.load(await values.take_over(UUID(int=9), composed)) == {"a": [data, data]}

    asyncio.run(there_and_back())


async def test_a_mark_written_with_escapes_is_a_mark_too() -> None:
    """JSON may write any character of a key as an escape: such data name no blob either."""
    text = json_text(FORGED).replace("$blob", r"\u0024bl\u006Fb")
    values = values_in(MemoryBlobs())
    stored = await values.store(RUN, text)
    beside = await values.store(RUN, json_text(LARGE))
    assert await values.load(f"[{stored},{beside}]") == [FORGED, LARGE]


async def test_data_as_deep_as_is_allowed_come_back() -> None:
    """The deepest nesting that payloads may have is wrapped and unwrapped."""
    value: Any = FORGED
    for number in range(MAX_DEPTH - 2):
        value = [value] if number % 2 else {"$literal": value}
    values = values_in(None)
    assert await values.load(await values.store(RUN, json_text(value))) == value


@pytest.mark.parametrize(("length", "stored"), [(INLINE_BYTES - 2, False), (INLINE_BYTES - 1, True)])
@pytest.mark.parametrize("letter", ["a", "é"])
async def test_the_limit_counts_bytes_of_json(length: int, stored: bool, letter: str) -> None:
    """Up to 64 KiB a text stays as it is; one byte more and a reference by store, run and SHA-256 travels."""
    blobs = MemoryBlobs()
    text = json_text(letter * (length // len(letter.encode())) + "a" * (length % len(letter.encode())))
    assert len(text.encode()) == length + 2
    found = await values_in(blobs).store(RUN, text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    expected = reference_text(Reference(f"{STORE}/runs/{RUN}/{digest}", length + 2, digest))
    assert found == (expected if stored else text)
    assert blob_of(blobs) == ([f"{STORE}/runs/{RUN}/{digest}"] if stored else [])


async def test_the_same_value_is_stored_once() -> None:
    """Storing again after an answer was lost writes the same blob."""
    blobs = MemoryBlobs()
    values = values_in(blobs)
    assert await values.store(RUN, json_text(LARGE)) == await values.store(RUN, json_text(LARGE))
    assert len(blob_of(blobs)) == 1


async def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit nothing is stored, and the error names both sizes."""
    monkeypatch.setattr("headrace.engine.values.MAX_VALUE_BYTES", 2 << 20)
    blobs = MemoryBlobs()
    with pytest.raises(PayloadTooLargeError, match=r"at most 2 MiB, got '2097155 bytes'"):
        await values_in(blobs).store(RUN, json_text("a" * ((2 << 20) + 1)))
    assert blob_of(blobs) == []


async def test_without_a_storage_large_values_are_refused() -> None:
    """The error names the table of the settings; small values need none."""
    values = values_in(None)
    assert await values.load(await values.store(RUN, "[1]")) == [1]
    with pytest.raises(ConfigError, match=r"larger than 64 KiB .*\[blob_storage\]"):
        await values.store(RUN, json_text(LARGE))
    with pytest.raises(ConfigError, match=r"\[blob_storage\]"):
        await values.load(json_text(FORGED))


async def test_lone_surrogates_are_refused() -> None:
    """What UTF-8 cannot hold is named before anything is stored."""
    with pytest.raises(InvalidInputError, match="lone surrogates"):
        await values_in(MemoryBlobs()).store(RUN, json_text(LARGE + "\ud800"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "has .* bytes, .* were stored"),
        (lambda data: data[:-1] + b" ", "is not what was stored: its SHA-256 is"),
        (None, "is missing"),
    ],
)
async def test_a_blob_that_is_not_what_was_stored_is_named(change: Any, words: str) -> None:
    """A blob that was cut, changed or removed is an error with its key, also when it is one of many."""
    blobs = MemoryBlobs()
    values = values_in(blobs)
    stored = [await values.store(RUN, json_text([number, LARGE])) for number in range(20)]
    broken = json.loads(stored[7])["$blob"]["key"]
    if change is None:
        await blobs.delete_blob(broken)
    else:
        await blobs.put_blob(broken, change(await blobs.get_blob(broken)))
    with pytest.raises(BlobStoreError, match=f"{broken} {words}") as raised:
        await values.load(f"[{','.join(stored)}]")
    assert (raised.value.lost, raised.value.transient) == (True, False)


async def test_no_other_blob_is_read_through_forged_data() -> None:
    """Data that look like a reference to another run's blob come back as data."""
    values = values_in(MemoryBlobs())
    other = json.loads(await values.store(UUID(int=8), json_text(LARGE)))
    assert await values.load(await values.store(RUN, json_text([other, LARGE]))) == [other, LARGE]


class CountingBlobs(MemoryBlobs):
    """Counts how many calls run at once, and how many there were."""

    running = most = calls = 0

    async def get_blob(self, key: str) -> bytes:
        """Let others begin before the answer."""
        self.running, self.calls = self.running + 1, self.calls + 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return await super().get_blob(key)


async def test_many_references_are_read_a_few_at_once_and_each_once() -> None:
    """100 references, each twice: no more than eight reads at once, 100 in all, and no value is shared."""
    blobs = CountingBlobs()
    values = values_in(blobs)
    stored = [await values.store(RUN, json_text([number, LARGE])) for number in range(100)]
    found = await values.load(f"[{','.join(stored * 2)}]")
    assert [one for one, _ in found] == [*range(100)] * 2
    assert (blobs.most, blobs.calls) == (8, 100)
    found[0].append("mine")
    assert len(found[100]) == 2


async def test_of_what_is_too_long_nothing_is_read() -> None:
    """A bound holds for the whole text, in which the same value may stand many times."""
    blobs = CountingBlobs()
    values = values_in(blobs)
    stored = await values.store(RUN, json_text(LARGE))
    size = len(str(await values.load_text(stored)))
    assert blobs.calls == 1
    assert await values.load_text(f"[{stored},{stored}]", most=3 * size) is None
    assert blobs.calls == 1
    assert await values.load_text(f"[{stored},{stored}]", most=5 * size) == json_text([LARGE, LARGE])
    assert await values.load_text("[1]", most=2) is None


async def test_after_an_error_no_more_is_read() -> None:
    """One missing blob ends the loading of many: what was not begun is not read."""
    blobs = CountingBlobs()
    values = values_in(blobs)
    stored = [await values.store(RUN, json_text([number, LARGE])) for number in range(100)]
    for key in blob_of(blobs):
        await blobs.delete_blob(key)
    with pytest.raises(BlobStoreError):
        await values.load(f"[{','.join(stored)}]")
    assert blobs.calls <= 16


async def test_values_taken_over_outlive_the_run_they_came_from() -> None:
    """A repeated run has blobs of its own, of composed values too; small texts are left as they are."""
    blobs = MemoryBlobs()
    values = values_in(blobs)
    inner = await values.store(RUN, json_text(LARGE))
    composed = await values.store_composed(RUN, f"[{','.join([inner] * 500)}]")
    assert parse_reference(json.loads(composed)) is not None
    later = uuid7()
    taken = await values.take_over(later, composed)
    for key in blob_of(blobs):
        if not key.startswith(f"{STORE}/runs/{later}/"):
            await blobs.delete_blob(key)
    assert await values.load(taken) == [LARGE] * 500
    assert await values.take_over(later, '{"$literal":{"$blob":1}}') == '{"$literal":{"$blob":1}}'


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {"$blob": 1}, {"$blob": {}}, {**FORGED, "more": 1},
        {"$blob": FORGED["$blob"] | {"more": 1}}, {"$blob": FORGED["$blob"] | {"bytes": True}},
        {"$blob": FORGED["$blob"] | {"sha256": "xyz"}}, {"$blob": FORGED["$blob"] | {"key": 1}},
    ],
)  # fmt: skip
def test_what_is_no_reference(value: Any) -> None:
    """A reference has exactly its keys, of the right kinds; anything else is data."""
    assert parse_reference(value) is None
    assert parse_reference(FORGED) == Reference(**FORGED["$blob"])  # type: ignore[arg-type]


def test_texts_without_marks_are_not_parsed_twice() -> None:
    """The quick look says no for ordinary JSON."""
    assert not reference.may_be_marked('{"blob":"$5","literal":"ü\\n"}')
