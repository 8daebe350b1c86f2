"""What of a failed case tells its failure from others: exception type, masked message, frame of the application."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.apps.report.clustering.codes import http_status
from headrace.apps.report.clustering.exceptions import CRASHES, read, trimmed
from headrace.apps.report.clustering.frames import Frame, frames_of
from headrace.apps.report.clustering.mask import mask
from headrace.apps.report.clustering.wording import codes_of, tokens_of, weight_of
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.defects import DefectFact

#: A message that weighs less says too little to put two cases together: see `weight_of`. 页面无响应 alone (5) may be
#: any of ten bugs, 点击登录按钮后页面无响应 (11) is one.
LEAST_WEIGHT = 8
#: Types that programs raise for anything.
_UNTELLING = re.compile(
    r"^(?:\w*Assert\w*|Exception|RuntimeException|Error|RuntimeError|ComparisonFailure|\w*Timeout\w*)$"
)
#: Of a masked message so much is kept.
MOST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Signature:
    """Failures that share it are one. Any part may be empty."""

    exception: str = ""
    #: Masked.
    message: str = ""
    #: The innermost frame of the application, without line.
    frame: str = ""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words of the message."""
        return tokens_of(self.message)

    @property
    def codes(self) -> frozenset[str]:
        """Numbers that tell failures apart."""
        return codes_of(self.tokens)

    @property
    def status(self) -> str:
        """The HTTP status that the message names; or empty."""
        return http_status(self.message)

    @property
    def key(self) -> tuple[bool, int, tuple[str, ...], str, str, str]:
        """Orders what has a frame before what has none, and then the short before the long."""
        return (not self.frame, len(self.tokens), self.tokens, self.exception, self.frame, self.message)


def signature_of(case: Case, fact: DefectFact | None = None) -> Signature:
    """The signature of a failed or blocked case; `fact` is looked at where the case has no text of its own.

    >>> from headrace.apps.report.data.cases import Source
    >>> text = "TypeError: 'NoneType' is no list\\n  File \\"shop/cart.py\\", line 3, in total"
    >>> signature_of(Case(case_id="T-1", error=text, source=Source(sheet="S", row=2)))
    Signature(exception='TypeError', message='<q> is no list', frame='cart.py:total')
    """
    text, is_prose = _text_of(case, fact)
    text = trimmed(text)
    said = read(text)
    prose = is_prose and not said.exception
    message = mask(said.message, prose=prose)
    frames = frames_of(said.trace) or frames_of(text)
    frame = _own(frames)
    if _weight(said.exception, message) < LEAST_WEIGHT and not frame:
        frame = _of_test(frames)
        if not frame:
            message = _with_title(case, message)
    return Signature(said.exception, message[:MOST_MESSAGE], frame)


def _text_of(case: Case, fact: DefectFact | None) -> tuple[str, bool]:
    """The text that says how it failed, and whether a person wrote it."""
    if case.error:
        return case.error, False
    told = (fact.actual, fact.quote, fact.snippet) if fact else ()
    return next((text for text in (case.actual, case.remark, *told) if text.strip()), ""), True


def _weight(exception: str, message: str) -> int:
    """How much both say. A type that names what went wrong counts as two words, AssertionError as none."""
    tells = exception and exception not in CRASHES and not _UNTELLING.search(exception)
    return weight_of(tokens_of(message)) + (4 if tells else 0)


def _own(frames: list[Frame]) -> str:
    return next((frame.label for frame in frames if not (frame.of_framework or frame.of_test) and frame.label), "")


def _of_test(frames: list[Frame]) -> str:
    return next((frame.label for frame in frames if frame.of_test and frame.label), "")


def _with_title(case: Case, message: str) -> str:
    """What was tested and how it failed: of a text that says little only both together tell one failure."""
    parts = (mask(case.title, prose=True) or case.case_id, message)
    return ": ".join(part for part in parts if part)
