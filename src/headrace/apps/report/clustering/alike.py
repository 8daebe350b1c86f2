"""When two signatures are one failure: a false pair hides a bug behind another, a missed one costs a glance."""

from __future__ import annotations

from collections import Counter
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
    if Indel.normalized_similarity(first, second, score_cutoff=LEAST_LIKENESS) < LEAST_LIKENESS:
        return False
    short, long = sorted((_telling(first), _telling(second)), key=len)
    left = iter(long)
    if not all(word in left for word in short):  # in the same order: `in` uses up what lies before
        return False
    return not NEGATIONS.intersection(Counter(long) - Counter(short))


def _telling(words: Iterable[str]) -> list[str]:
    return [word for word in words if word != MASKED and word not in STOP_WORDS]
