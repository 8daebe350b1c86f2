"""The first question: what of a conversation is worth remembering. Of one user, or of several in one call.

It depends on the messages and the terms alone, not on the profile: equal messages have equal logs, which may be kept
and shared.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from headrace import BadOutputError, ContextTooLongError
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.writing.apart import leaking
from headrace.apps.memory.writing.asking import USELESS, Answered, Ask, Asking, all_of, ask_for, reminded
from headrace.apps.memory.writing.language import LANGUAGES, Language, is_written_in, language_of
from headrace.apps.memory.writing.log import log_of
from headrace.apps.memory.writing.messages import Line, all_said, lines_of, portions, said_in, tokens_of
from headrace.apps.memory.writing.prompts import PROMPT_VERSION, question, system_of
from headrace.apps.memory.writing.shapes import LogLine, PartLog
from headrace.apps.memory.writing.terms import Terms

LOG = logging.getLogger("headrace.memory")
#: Tokens of an answer: for short conversations, and at most; in between as many as the conversation has.
LEAST_ROOM, MOST_ROOM = 512, 3_000
#: A conversation that is too long for the model, or has more to say than an answer holds, is halved, but one of fewer
#: tokens is not.
LEAST_SPLIT = 512


async def summarise(asking: Asking, terms: Terms, blobs: Iterable[Blob]) -> str:
    """Return the log of one user's conversation; "" where nothing of it is worth keeping.

    Raises BadOutputError where nothing of the answer can be read, other ProviderErrors.
    """
    lines = lines_of(blobs)
    if not lines:
        return ""
    language = language_of(said_in(lines), terms.language)
    logs = await all_of(_log(asking, terms, language, some) for some in portions(lines))
    return "\n".join(dict.fromkeys(line for log in logs for line in log.splitlines()))


def content_of(terms: Terms, blobs: Iterable[Blob]) -> tuple[str, ...]:
    """Return what the question about a conversation says."""
    lines = lines_of(blobs)
    language = language_of(said_in(lines), terms.language)
    return PROMPT_VERSION, system_of("summary", language, terms), question("summary", language, lines)


async def _log(asking: Asking, terms: Terms, language: Language, lines: Sequence[Line]) -> str:
    tokens = tokens_of(lines)
    ask = ask_for(terms, "summary", language, room_for(tokens), lines)
    try:
        found = await asking.items(ask, LogLine)
    except ContextTooLongError:
        if tokens < LEAST_SPLIT:
            raise
        found = None
    if found is None or (found.values and not found.is_complete and tokens >= LEAST_SPLIT):
        halves = portions(lines, tokens // 2)
        return "\n".join(await all_of(_log(asking, terms, language, half) for half in halves))
    if found.values and not _is_in(found.values, language):
        found = _better(found, await asking.items(reminded(ask, language), LogLine), language)
    if found.is_empty_handed:
        raise BadOutputError("Nothing of the summary could be read. The flush is tried again later.")
    if found.lost:
        LOG.warning("%d lines of a log could not be read; the others are kept", found.lost)
    return log_of(found.values)


async def summarise_together(
    asking: Asking, terms: Terms, parts: Sequence[tuple[str, Sequence[Blob]]], own: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the logs of several users' conversations, by key; None: to be asked alone.

    `own`: languages of parts, by key, instead of that of the terms. The model is shown "p1", "p2", … and never a key.
    Raises ProviderErrors other than RefusedError, BadOutputError and ContextTooLongError.
    """
    lines = {key: lines_of(blobs) for key, blobs in parts}
    names = {f"p{number}": key for number, key in enumerate((key for key in lines if lines[key]), start=1)}
    logs: dict[str, str | None] = {key: None if lines[key] else "" for key in lines}
    if not names:
        return logs
    told = {name: lines[key] for name, key in names.items()}
    wanted = {name: own.get(key, terms.language) for name, key in names.items()}
    languages = {name: language_of(said_in(some), wanted[name]) for name, some in told.items()}
    try:
        found = (await asking.items(_shared_ask(terms, told, languages), PartLog)).values
    except USELESS:  # what is wrong with one part shows when each is asked alone
        found = ()
    for name, log in _apart(found, told, languages).items():
        logs[names[name]] = log
    return logs


def _shared_ask(terms: Terms, lines: Mapping[str, Sequence[Line]], languages: Mapping[str, Language]) -> Ask:
    used = list(languages.values())
    language = max(LANGUAGES, key=used.count)
    heads = [{"part": name, "language": languages[name]} for name in lines]
    told = [{"part": name, **line} for name, some in lines.items() for line in some]
    room = sum(room_for(tokens_of(some)) for some in lines.values())
    return ask_for(terms, "shared", language, room, heads, told)


def _apart(
    found: Iterable[PartLog], lines: Mapping[str, Sequence[Line]], languages: Mapping[str, Language]
) -> dict[str, str | None]:
    """Return the logs that may stand, by part; None for parts that are said twice, are in the wrong language, or tell
    what is another's."""
    said = {name: all_said(some) for name, some in lines.items()}
    logs: dict[str, str | None] = {}
    for item in found:
        name = item.part.casefold()
        if name in said:
            others = [text for other, text in said.items() if other != name]
            stands = _is_in(item.lines, languages[name])
            stands = stands and not leaking([line.text for line in item.lines], said[name], others)
            logs[name] = log_of(item.lines) if stands and name not in logs else None
    return logs


def room_for(tokens: int) -> int:
    """Return how long an answer about so many tokens may be."""
    return min(max(LEAST_ROOM, tokens), MOST_ROOM)


def _is_in(lines: Iterable[LogLine], language: Language) -> bool:
    return is_written_in([line.text for line in lines], language)


def _better(first: Answered[LogLine], second: Answered[LogLine], language: Language) -> Answered[LogLine]:
    # Facts in the wrong language are better than none.
    return second if second.values and _is_in(second.values, language) else first
