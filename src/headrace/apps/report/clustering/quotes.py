"""Quoted parts: in what a program writes they are data; in what a tester writes they are the words of the screen."""

from __future__ import annotations

import re

from headrace.apps.report.clustering.codes import HIDDEN

_LONGEST = 300
#: Opening and closing marks. Book titles 《》 name data, too; 【】 names buttons and is handled as quotes in prose.
_PAIRS = ("“”", "‘’", "「」", "『』", "《》", "«»")
_BRACKETS = "|".join(f"{pair[0]}[^{pair}\n]{{0,{_LONGEST}}}{pair[1]}" for pair in _PAIRS)
# An apostrophe opens only where no letter stands before it ("can't"), and closes only where none follows. The letter
# of b'…' and f'…' belongs to the quote.
_LETTER = "0-9A-Za-z_À-ɏ"
_SINGLE = rf"(?<![{_LETTER}'])[bruf]?'(?:[^'\n]|(?<=[{_LETTER}])'(?=[{_LETTER}])){{0,{_LONGEST}}}'(?![{_LETTER}])"
_DOUBLE = rf'\\?"(?:[^"\n\\]|\\[^"\n]){{0,{_LONGEST}}}\\?"'
_QUOTED = re.compile(rf"{_DOUBLE}|`[^`\n]{{0,{_LONGEST}}}`|{_BRACKETS}|{_SINGLE}")
_IN_PROSE = re.compile(rf"{_QUOTED.pattern}|【[^【】\n]{{0,{_LONGEST}}}】")
#: What names a member of JSON, or the element that a browser test looks for, stays: it is what failed.
_KEY = re.compile(r'"([A-Za-z_][\w-]{0,40})"(?=\s*:)')
_LOCATOR = re.compile(r"(?:selector|By\.\w+\(?|xpath|css|has-?text)[\"']?\s*[:=(]?\s*$")
_LOCATOR_CALL = re.compile(
    r"\b(?:getBy\w+|get_by_\w+|(?:frame)?[lL]ocator)\([^()\n]{0,200}\)|\{[^{}\n]{0,60}selector[^{}\n]{0,200}\}"
)
_MARKS = re.compile(r"[\"'`{}\\]")
_DATA = re.compile(r"[\d_/\\@{}=<>.]")
_MOST_WORDS = 40


def without_quotes(text: str, *, prose: bool) -> str:
    """Mask quoted parts as `<q>`. In prose the marks go and words stay: 点击“登录” is 点击登录.

    >>> without_quotes("can't open 'a.txt' of `lin`", prose=False)
    "can't open <q> of <q>"
    >>> without_quotes("点击“登录”后提示「密码错误」，用户'u_17'", prose=True)
    '点击登录后提示密码错误，用户<q>'
    """
    if prose:
        return _IN_PROSE.sub(_words_or_mask, text)
    bare = _LOCATOR_CALL.sub(lambda found: _MARKS.sub(" ", found[0]), _KEY.sub(r"\1", text))
    return _QUOTED.sub(_mask_or_locator, bare)


def _words_or_mask(found: re.Match[str]) -> str:
    inner = found[0].strip("\\")[1:-1]
    if len(inner) > _MOST_WORDS or _DATA.search(inner):
        return masked(found[0])
    return inner


def _mask_or_locator(found: re.Match[str]) -> str:
    if _LOCATOR.search(found.string, max(0, found.start() - 24), found.start()):
        return f" {found[0][1:-1]} "
    return masked(found[0])


def masked(quoted: str, mask: str = "<q>") -> str:
    """The mask, and after it the codes that stand in what is masked."""
    return " ".join([mask, *HIDDEN.findall(quoted)])
