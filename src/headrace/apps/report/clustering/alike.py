"""When two signatures are one failure: a false pair hides a bug behind another, a missed one costs a glance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rapidfuzz.distance import Indel

from headrace.apps.report.clustering.exceptions import CRASHES
from headrace.apps.report.clustering.frames import owner_of
from headrace.apps.report.clustering.signature import Signature
from headrace.apps.report.clustering.wording import MASKED, NEGATIONS, STOP_WORDS

#: Least likeness of two messages, 2·common/all words in order. Below 0.8 one of two texts says half as much again as
#: the other, and what it adds may be another cause.
LEAST_LIKENESS = 0.8
#: Messages with fewer words are one only if they are equal: one word more is another failure there.
FEWEST_WORDS = 8


def are_one(first: Signature, second: Signature) -> bool:
    """Whether two signatures are of one failure.

    Type and codes have to be equal, frames not to contradict each other, and one message has to be the other with words
    added: where each has a word of its own (登录 and 支付) they speak of two things.

    >>> login, pay = Signature(message="点击登录按钮后页面无响应"), Signature(message="点击支付按钮后页面无响应")
    >>> are_one(login, pay), are_one(login, Signature(message="点击登录按钮后,页面没有响应,刷新依旧"))
    (False, True)
    """
    if first.exception != second.exception or first.codes != second.codes:
        return False
    return frames_agree(first, second) and _same_words(first.tokens, second.tokens)


def frames_agree(first: Signature, second: Signature) -> bool:
    """Whether both may have failed in one place."""
    if first.frame == second.frame:
        return True
    if first.exception in CRASHES:
        return False
    # A text may be cut before its frames; methods of one class, or functions of one file, share what they call.
    return not (first.frame and second.frame) or owner_of(first.frame) == owner_of(second.frame)


def _same_words(first: Sequence[str], second: Sequence[str]) -> bool:
    if first == second:
        return True
    if min(len(first), len(second)) < FEWEST_WORDS:
        return False
    if _telling(set(first).difference(second)) and _telling(set(second).difference(first)):
        return False
    if Indel.normalized_similarity(first, second, score_cutoff=LEAST_LIKENESS) < LEAST_LIKENESS:
        return False
    return all(_says_the_same(first[a:b], second[c:d]) for a, b, c, d in _gaps(first, second))


def _gaps(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Where the two differ: what stands in the first, and what in the second in its place."""
    gaps: list[tuple[int, int, int, int]] = []
    at_first = at_second = 0
    for block in Indel.opcodes(first, second).as_matching_blocks():  # the last, of no length, is at the ends
        if (block.a, block.b) != (at_first, at_second):
            gaps.append((at_first, block.a, at_second, block.b))
        at_first, at_second = block.a + block.size, block.b + block.size
    return gaps


def _says_the_same(words: Sequence[str], others: Sequence[str]) -> bool:
    one, other = _telling(words), _telling(others)
    if one and other:
        return False
    return not NEGATIONS.intersection(one or other)


def _telling(words: Iterable[str]) -> list[str]:
    return [word for word in words if word != MASKED and word not in STOP_WORDS]
