"""The words of a masked text, by which texts are compared."""

from __future__ import annotations

import re
from functools import lru_cache

#: What stands for anything that was masked.
MASKED = "<>"
_TOKENS = re.compile(r"<\w+>|[一-鿿぀-ヿ가-힯]|[^\W_一-鿿぀-ヿ가-힯]+")
#: Words that say nothing of the failure.
STOP_WORDS = frozenset("的了着后时地得会被把并且请") | {
    *("a", "an", "the", "is", "are", "was", "were", "be", "to", "of", "in", "on", "at", "it", "that", "and", "with"),
}
#: One spelling for each way to say no: a failure is told with any of them.
_NO = re.compile(r"没有|没能|未能|没|未|不能|无法")
NEGATIONS = frozenset({"无", "不", "not", "no", "never", "cannot", "without"})
_SHORTENED = re.compile(r"(?<=n)['’]t\b")


@lru_cache(maxsize=20_000)
def tokens_of(text: str) -> tuple[str, ...]:
    """Words, single Chinese characters, and one `<>` for each run of masks.

    >>> tokens_of("Order <id> of <n> <q> failed, 页面没有响应")
    ('order', '<>', 'of', '<>', 'failed', '页', '面', '无', '响', '应')
    """
    plain = _NO.sub("无", _SHORTENED.sub("o not", text.lower()))
    tokens: list[str] = []
    for word in _TOKENS.findall(plain):
        token = MASKED if word[0] == "<" else word
        if token in ("了", "的") or (token == MASKED and tokens[-1:] == [MASKED]):
            continue
        tokens.append(token)
    return tuple(tokens)


def codes_of(tokens: tuple[str, ...]) -> frozenset[str]:
    """The words that hold digits: only codes outlive the masks with theirs."""
    return frozenset(token for token in tokens if any(sign.isdigit() for sign in token))


def weight_of(tokens: tuple[str, ...]) -> int:
    """How much a text says: 1 for each Chinese character, 2 for each word, 4 for each code; masks say nothing.

    >>> weight_of(tokens_of("登录失败")), weight_of(tokens_of("the page is blank")), weight_of(tokens_of("<n> <q>"))
    (4, 4, 0)
    """
    telling = [token for token in tokens if token != MASKED and token not in STOP_WORDS]
    return sum(1 if len(token) == 1 else 2 for token in telling) + 2 * len(codes_of(tokens))
