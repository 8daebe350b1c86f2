"""Reasoning within an answer, as servers send it that do not take it out: what is drafted there is no answer."""

from __future__ import annotations

import re

#: At the start of a text: reasoning begins.
BEGIN = re.compile(r"[\s\ufeff]*<think(?:ing)?>", re.IGNORECASE)
END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
#: Characters of the longest tag.
LONGEST_TAG = len("</thinking>")
_JSON = re.compile(r"[\s\ufeff]*(?:[\[{]|```)")


def may_begin(text: str) -> bool:
    """Whether this start of a text may become one of reasoning.

    >>> may_begin(" <thi"), may_begin("<b>")
    (True, False)
    """
    return "<thinking>".startswith(text.strip(" \t\r\n\ufeff").lower())


def without_reasoning(text: str) -> str:
    r"""The text behind the reasoning; empty where that never ends.

    Some templates give the opening tag to the model, so that the answer holds the closing one alone.

    >>> without_reasoning("<think>Rather 7? No.</think>\n8"), without_reasoning("<think>Rather"), without_reasoning("8")
    ('\n8', '', '8')
    """
    is_tagged = False
    while (begin := BEGIN.match(text)) is not None:
        end = END.search(text, begin.end())
        text, is_tagged = "" if end is None else text[end.end() :], True
    if is_tagged or _JSON.match(text) is not None:
        return text
    *_, last = (None, *END.finditer(text))
    return text if last is None else text[last.end() :]
