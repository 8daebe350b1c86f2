"""Texts without what varies from one failure to the next: names, numbers, times, ids, addresses."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from headrace.apps.report.clustering.codes import hide, show
from headrace.apps.report.clustering.quotes import masked, without_quotes

#: A text is cut here before anything looks at it.
MOST_CHARACTERS = 2_000

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TAG = re.compile(r"(?<![\w<])<[A-Za-z!][^<>\n]{0,300}>|</[A-Za-z][\w-]{0,40}>")
# The order counts: what holds other kinds inside comes first. `\d` and no `\b` beside Chinese, which has no spaces.
_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), mask)
    for pattern, mask in (
        (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>，。；、）)\]]+", "<url>"),
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
        (r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\d.])", "<ip>"),
        (r"(?<![\w.])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}", "<ip>"),
        (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "<uuid>"),
        (
            r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?",
            "<time>",
        ),
        (r"(?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号]?(?:\s?\d{1,2}[:点时]\d{0,2}分?)?", "<time>"),
        (
            r"(?:上午|下午|晚上|凌晨)?(?<![\d.:])\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:\s?[ap]m\b)?|(?:上午|下午|晚上|凌晨)\d{1,2}点",
            "<time>",
        ),
        (r"(?<![a-z])[a-z]:\\(?:[^\s\\/:*?\"<>|，。]+\\?)+", "<path>"),
        (r"(?<![\w<.])~?(?:/[\w.@+-]+){2,}/?|(?<![\w/])(?:[\w.-]+/){2,}[\w.-]+", "<path>"),
        (r"0x[0-9a-f]+|@[0-9a-f]{5,16}\b", "<hex>"),
        (r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}(?![0-9a-z])", "<hex>"),
        (r"(?<![\w+/=])(?=[\w+/]*\d)(?=[\w+/]*[a-z])[\w+/]{24,}={0,2}(?![\w+/=])", "<hash>"),
        (r"(?<![a-z0-9])[a-z]{1,12}(?:[-_][a-z]{1,12}){0,2}[-_]\d+(?:[-_]\w+)*(?![a-z])", "<id>"),
        (r"(?<![\w.])v?\d+\.\d+\.\d+(?:[.+-]?\w+)*", "<version>"),
        (
            r"(?<!\d)(?<!\d[.,])\d+(?:[.,]\d+)*\s?(?:(?:ms|milliseconds?|s|secs?|seconds?|min|minutes?|hours?|days?)\b|毫秒|秒钟?|分钟|个?小时|天)",
            "<t>",
        ),
        (r"(?:半|几|一|两|三|十)(?:个?小时|分钟|天)", "<t>"),
        (r"[+-]?(?<!\d)\d+(?:[.,]\d+)*(?:e[+-]?\d+)?", "<n>"),
    )
)
_CONTAINER = re.compile(r"[\[{(][^\[\]{}()]{0,1000}(?:<q>|: ?<)[^\[\]{}()]{0,1000}[\]})]|\{[^{}\n]{0,1000}\}")
_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=20_000)
def mask(text: str, *, prose: bool = False) -> str:
    """Return a text of one line in which what varies is masked, and codes of errors are not.

    `prose`: a person wrote it, see `quotes`.

    >>> mask("Order ORD_991 of 'Lin' failed at 2026-03-05 10:30 with HTTP 500 after 30 s")
    'Order <id> of <q> failed at <time> with HTTP 500 after <t>'
    >>> mask("订单202603050001支付失败，错误码E1001", prose=True)
    '订单<n>支付失败,错误码E1001'
    """
    bare = _TERMINAL.sub("", unicodedata.normalize("NFKC", text[:MOST_CHARACTERS]))
    text = hide(bare)
    text = _TAG.sub(lambda found: masked(found[0], "<tag>"), text)
    text = without_quotes(text, prose=prose)
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    for _ in range(2):  # data in data
        text = _CONTAINER.sub(lambda found: masked(found[0], "<data>"), text)
    return show(_SPACE.sub(" ", text).strip())
