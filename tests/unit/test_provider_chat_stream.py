"""A streamed answer is the same however its bytes are cut, and a broken one is told from a whole one."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.llm import Answer, FinishReason
from headrace.model.provider_errors import (
    BadOutputError,
    OverloadedError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
)
from headrace.model.usage import Usage
from headrace.providers import chat_stream
from headrace.providers.alike import MOST_TRIES, AlikeEvents
from headrace.providers.bounds import LARGEST_ANSWER
from headrace.providers.chat import Reader
from headrace.providers.chat_stream import AnswerStream
from headrace.providers.fault import Fault
from headrace.providers.faults import sort_fault
from headrace.providers.texts import LONGEST_NAME
from tests.effort import bounded_work

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}


def event(**fields: Any) -> bytes:
    """One event on one line."""
    return b"data: " + json.dumps({"id": "c1", "model": "m-1", **fields}, ensure_ascii=False).encode() + b"\n\n"


def delta(text: str | None = None, reason: str | None = None, **fields: Any) -> bytes:
    """An event with a part of the text."""
    return event(choices=[{"index": 0, "delta": {"content": text, **fields}, "finish_reason": reason}])


def raw_delta(text: str | None, reason: str | None = None) -> bytes:
    """A part of the text, escaped, so that it may hold halves of pairs."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
WHOLE = delta("Grüße, ") + delta("Welt 🌍") + delta(None, "stop") + event(choices=[], usage=USAGE) + DONE


def read(*chunks: bytes) -> tuple[str, Answer]:
    """The parts put together, and the answer."""
    stream = AnswerStream("openai", Reader("openai", headers={"x-request-id": "req_1"}))
    text = "".join([stream.feed(chunk) for chunk in chunks])
    return text, stream.finish()


@given(st.lists(st.integers(0, len(WHOLE)), max_size=30))
def test_it_does_not_matter_where_bytes_are_cut(places: list[int]) -> None:
    """Chunks end anywhere, also within a character: parts and answer are the same."""
    edges = sorted({0, len(WHOLE), *places})
    text, answer = read(*(WHOLE[start:end] for start, end in itertools.pairwise(edges)))

    assert text == answer.text == "Grüße, Welt 🌍"
    assert answer.usage == Usage(input_tokens=7, output_tokens=3, calls=1)
    assert (answer.finish_reason, answer.model, answer.request_id) == (FinishReason.STOP, "m-1", "req_1")


@given(
    st.lists(
        st.text(max_size=4) | st.sampled_from(["ab", 'a"b', "\\n", "\n", "\0", "\ud83c", "\udf0d", "é"]), max_size=12
    ),
    st.booleans(),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n", b"\n\n\n"]),
    st.sampled_from(
        [b"", b": wait\n\n", delta("Ab", index=1), delta(None), delta("No", refusal="No."), b"data: {x\n\n"]
    ),
    st.lists(st.integers(0, 3_000), max_size=6),
)
def test_alike_events_say_what_each_would_say(
    texts: list[str], escaped: bool, gap: bytes, other: bytes, places: list[int]
) -> None:
    """Whatever their texts are, what stands between them, and where bytes are cut: as if each had a padding."""

    def written(text: str, pad: str) -> bytes:
        body = {"id": pad, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        return b"data: " + json.dumps(body, ensure_ascii=escaped).encode("utf-8", "surrogatepass") + gap

    def told(padded: bool) -> Any:
        events = [written(text, str(number) if padded else "") for number, text in enumerate(texts)]
        events.insert(len(events) // 2, other)
        raw = b"".join([*events, delta(None, "stop"), DONE])
        edges = sorted({0, len(raw), *(place for place in places if place < len(raw))})
        try:
            text, answer = read(*(raw[start:end] for start, end in itertools.pairwise(edges)))
        except ProviderError as error:
            return type(error)
        return text, answer.text, answer.finish_reason

    assert told(padded=False) == told(padded=True)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The events that were read on their own."""
    lines: list[bytes] = []
    read_quickly = chat_stream._read_quickly

    def noting(line: bytes) -> Any:
        if line.strip():
            lines.append(line)
        return read_quickly(line)

    monkeypatch.setattr(chat_stream, "_read_quickly", noting)
    return lines


@pytest.mark.parametrize("gap", [b"\n\n", b"\r\n\r\n"], ids=["lf", "crlf"])
def test_alike_events_are_taken_together(looked: list[bytes], gap: bytes) -> None:
    """Of a run of them none is read but the first; one whose word stands elsewhere in it teaches nothing."""
    stream = AnswerStream("openai", Reader("openai"))
    ambiguous = event(choices=[{"delta": {"content": "word"}, "said": "word"}])
    words = [*[" "] * 30, "Ab", ' "c": ', "\n", "δ", *["d"] * 50]
    raw = ambiguous + b"".join(delta(word) for word in words)
    assert stream.feed(raw.replace(b"\n\n", gap)) == "".join(["word", *words])
    assert len(looked) == 32, "what cannot teach costs no try"


def test_another_form_is_learnt_where_the_known_one_ends(looked: list[bytes]) -> None:
    """Some servers count the seconds in each event: of every second one is read."""
    stream = AnswerStream("openai", Reader("openai"))
    seconds = (event(created=second, choices=[{"delta": {"content": "a"}}]) * 40 for second in range(8))
    assert stream.feed(b"".join(seconds)) == "a" * 320
    assert len(looked) == 8


def test_reads_that_end_within_a_gap_forget_nothing(looked: list[bytes]) -> None:
    """Some servers write the empty line on its own: what comes together later is read together all the same."""
    stream = AnswerStream("openai", Reader("openai"))
    parts = [delta("word"), *[piece for _ in range(2 * MOST_TRIES) for piece in (delta("a")[:-1], b"\n")]]
    assert "".join([stream.feed(part) for part in parts]) == "word" + "a" * 2 * MOST_TRIES
    before = len(looked)
    assert stream.feed(delta("b") * 50) == "b" * 50 and len(looked) == before


def test_the_last_count_of_tokens_counts_wherever_it_stands() -> None:
    """Also where the events that write have one of their own."""
    own = event(choices=[{"index": 0, "delta": {"content": "a"}}], usage={**USAGE, "prompt_tokens": 1})
    raw = own + event(choices=[], usage={**USAGE, "prompt_tokens": 9}) + own * 3 + delta(None, "stop") + DONE
    assert read(raw)[1].usage.input_tokens == 1


def test_a_run_of_alike_events_may_be_cut_anywhere() -> None:
    """In their texts, in what stands around them, and between them."""
    words = ["One", "two", ' "3"', "\\", "\n", "δ🌍", "end"]
    raw = b"".join([*map(delta, words), delta(None, "stop"), DONE])
    for place in range(len(raw)):
        assert read(raw[:place], raw[place:])[0] == "".join(words), place


@pytest.mark.parametrize(
    ("one", "other"), [('a\\', ',"b'), ("a\\", "nb"), ("a\\u00", "41"), ('x","y', "z"), ('x",["', '"],"z'), ("\t", "")]
)  # fmt: skip
def test_texts_that_are_whole_only_together_are_broken(one: str, other: str) -> None:
    """What no event says alone, its neighbour does not help to say."""
    broken = [delta("TEXT").replace(b"TEXT", text.encode()) for text in (one, other)]
    with pytest.raises(BadOutputError):
        read(delta("An") + delta(" elf") + b"".join(broken) + delta("!") + delta(None, "stop") + DONE)


def test_nothing_is_taken_behind_the_end_or_within_an_event() -> None:
    """However much it looks like what came before."""
    assert read(delta("a") * 3 + DONE + delta("b") * 3)[0] == "aaa"
    half, rest = delta("c").replace(b', "model"', b',\ndata: "model"').split(b"\n", 1)
    assert read(delta("a") * 3 + half + b"\n", rest + delta("b") * 3 + DONE, delta(None, "stop"))[0] == "aaacbbb"
    with pytest.raises(BadOutputError):
        read(delta("a") * 3 + half + b"\n", delta("b") * 3, delta(None, "stop") + DONE)


@pytest.mark.parametrize("between", [b": still here\n\n", b"event: message\n", b"\n"])
@pytest.mark.parametrize("written", [delta("a"), delta("a")[:-1]], ids=["apart", "close"])
def test_events_that_do_not_stand_back_to_back_take_linear_time(
    written: bytes, between: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that came is looked through for a run a few times at most."""
    looked = 0
    read_run = AlikeEvents.read

    def noting(events: AlikeEvents, data: bytes, at: int) -> tuple[str, int]:
        nonlocal looked
        looked += (len(data) - at) * data.startswith(events._before, at)
        return read_run(events, data, at)

    monkeypatch.setattr(AlikeEvents, "read", noting)
    raw = (written + between) * 1_000 + delta("a", "") * 1_000
    text, _ = read(raw + delta(None, "stop") + DONE)
    assert text == "a" * 2_000 and looked <= (MOST_TRIES + 1) * len(raw)


@pytest.mark.parametrize(
    "raw",
    [
        WHOLE.replace(b"\n\n", b"\r\n\r\n"),
        WHOLE.replace(b"\n\n", b"\n"),  # no empty line between events
        WHOLE.replace(b"data: ", b"data:"),
        b": keep-alive\n\nevent: message\nid: 3\nretry: 10\n" + WHOLE,
        WHOLE.removesuffix(DONE),  # servers that never say it is done
        WHOLE.removesuffix(b"\n\n"),
        WHOLE + event(choices=[{"delta": {"content": "behind the end"}}]),
        WHOLE.replace(b'"usage": {"p', b'"usage": null, "x_groq": {"usage": {"p').replace(b"2}}}", b"2}}}}"),
        delta("Gr\u00fc\u00dfe, ").replace(b', "model"', b',\ndata: "model"') + WHOLE[len(delta("Grüße, ")) :],
    ],
    ids=["crlf", "one newline", "no space", "comments", "no done", "no end of line", "behind", "groq", "two lines"],
)
def test_servers_keep_few_of_the_rules(raw: bytes) -> None:
    """Forms that servers really send, and some that they may."""
    text, answer = read(raw)

    assert text == answer.text == "Grüße, Welt 🌍"
    assert answer.usage.tokens == 10


def test_a_server_that_says_nothing_of_tokens() -> None:
    """What the call cost is unknown, not 0."""
    _, answer = read(delta("hi"), delta(None, "stop"), DONE)

    assert answer.usage == Usage(calls=1, unpriced=1)
    assert answer.usage.cost is None


def test_an_answer_that_ran_out_of_room_says_so() -> None:
    """The finish reason is read as in a whole answer; a refusal is text that says so."""
    assert read(delta("hi"), delta(None, "length"), DONE)[1].finish_reason is FinishReason.LENGTH
    refused = read(event(choices=[{"delta": {"refusal": "No."}}]), delta(None, "stop"), DONE)
    assert (refused[0], refused[1].text, refused[1].finish_reason) == ("No.", "No.", FinishReason.REFUSED)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (delta("he"), ProviderUnavailableError),
        (b"", ProviderUnavailableError),
        (delta("he") + b"data: {not json}\n\n" + DONE, BadOutputError),
        (delta("he") + b"data: [1]\n\n" + DONE, BadOutputError),
        (delta("he") + b'data: {"choices": \xff}\n\n' + DONE, BadOutputError),
        (delta("he") + b'data: {"choices": [', BadOutputError),
        (DONE, BadOutputError),
        (delta(None, "tool_calls", tool_calls=[{"id": "call_1"}]) + DONE, BadOutputError),
        (delta("he") + event(error={"type": "overloaded_error"}), OverloadedError),
        (delta("he") + event(error={"code": "rate_limit_exceeded"}), RateLimitedError),
        (delta("he") + event(error={"code": 502, "message": "upstream"}), ProviderUnavailableError),
        (delta("he") + event(error={"message": "who knows"}), ProviderUnavailableError),
    ],
)
def test_a_broken_stream_may_have_been_paid(raw: bytes, kind: type[ProviderError]) -> None:
    """Cut, not JSON, not UTF-8, empty, or an error in the midst of it: named, and counted as perhaps paid."""
    with pytest.raises(ProviderError) as caught:
        read(raw)

    assert type(caught.value) is kind
    assert caught.value.maybe_paid


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 65_536, b"y" * 65_536, delta("z" * 65_536)])
def test_a_stream_without_an_end_is_refused(chunk: bytes) -> None:
    """Neither a line, nor an event, nor the text grows beyond the bound on an answer."""
    stream = AnswerStream("openai", Reader("openai"))
    with pytest.raises(BadOutputError, match=str(LARGEST_ANSWER)):
        for _ in range(2 * LARGEST_ANSWER // 65_536):
            stream.feed(chunk)


@pytest.mark.parametrize("piece", [b"a" * 512, b"data: [1,\n", b"data: 1,\n"], ids=["line", "list", "lines"])
def test_a_hostile_stream_takes_linear_time(piece: bytes) -> None:
    """A line that comes in small pieces, or an event of many lines, is not read anew at each of them."""
    stream = AnswerStream("openai", Reader("openai"))
    stream.feed(b'data: {"choices": [\n')
    with bounded_work(5), pytest.raises(BadOutputError):
        for _ in range(2 * LARGEST_ANSWER // len(piece)):
            stream.feed(piece)


def test_names_that_a_provider_gives_are_short_and_printable() -> None:
    """An id of any length, or with characters that no store takes, does not come in the way of its answer."""
    choice = {"message": {"content": "yes"}, "finish_reason": "stop"}
    body = {"id": "r\0-1\ud800" + "x" * 100_000, "model": "m\0\n1", "choices": [choice]}
    answer = Reader("openai").answer_in(body)
    named = Reader("openai", headers={"x-request-id": "q" * 5_000}).answer_in(body)

    assert (answer.request_id, answer.model) == ("r-1" + "x" * (LONGEST_NAME - 5), "m1")
    assert named.request_id == "q" * LONGEST_NAME
    assert sort_fault(Fault(429, {"request-id": "a\x85b"}), provider="openai").request_id == "ab"


def test_texts_hold_nothing_that_stores_refuse() -> None:
    """NUL and halves of pairs come as U+FFFD, in whole answers and in streams, and parts are what the answer is."""
    said = "a\0b\ud800 \udc00 🌍"
    whole = Reader("openai").answer_in({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})
    parts, streamed = read(raw_delta(said), raw_delta("\ud83c"), raw_delta(None, "stop"), DONE)

    assert whole.text == "a\ufffdb\ufffd \ufffd 🌍"
    assert parts == streamed.text == whole.text + "\ufffd"


def test_a_pair_that_two_events_share_is_joined() -> None:
    """Servers that count in UTF-16 cut characters in two."""
    parts, answer = read(raw_delta("ü\ud83c"), raw_delta("\udf0d!", "stop"), DONE)

    assert parts == answer.text == "ü🌍!"
