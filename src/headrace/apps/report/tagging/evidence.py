"""What rules say of a case: each piece of evidence names a module, how sure it is, and why."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from headrace.apps.report.data.cases import Case
from headrace.apps.report.tagging.patterns import MOST_TEXT
from headrace.apps.report.tagging.rules import ModuleRule, Rules, compiled
from headrace.apps.report.tagging.spelling import Spellings

_PREFIX = re.compile(r"(.*?[^\W\d_])[-_. ]*\d+(?:[-_.#]\d+)*\s*$")
_BRACKET = re.compile(r"\s*[\[【「<(]\s*([^\]】」>)]{1,40}?)\s*[\]】」>)]")
_HEAD = re.compile(r"\s*([^:：\-—_|]{1,40}?)\s*[:：\-—_|]")
_CJK = re.compile(r"[一-鿿぀-ヿ가-힯]")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A module that a rule names for a case."""

    module: str
    confidence: float
    #: In words, as in 'keyword "login"'.
    rule: str


def prefix_of(case_id: str) -> str:
    """What an id has before its number, in capitals; or empty.

    >>> prefix_of("TC-Login-001"), prefix_of("login_7#2"), prefix_of("0815")
    ('TC-LOGIN', 'LOGIN', '')
    """
    found = _PREFIX.match(unicodedata.normalize("NFKC", case_id))
    return found[1].upper() if found else ""


def head_of(title: str) -> str:
    """What a title begins with in brackets, or before a colon or dash; or empty.

    >>> head_of("【登录】密码错误"), head_of("[Login] wrong"), head_of("Login: wrong"), head_of("Wrong password")
    ('登录', 'Login', 'Login', '')
    """
    found = _BRACKET.match(title) or _HEAD.match(title)
    return found[1] if found else ""


def from_rules(case: Case, rules: Rules) -> Iterator[Evidence]:
    """What the rules of a file say."""
    title, others = _folded(case.title), _folded(" ".join((case.preconditions, case.steps, case.expected)))
    for module in rules.modules:
        yield from _from_module(module, rules, case, (title, others))


def from_names(case: Case, spellings: Spellings, rules: Rules) -> Iterator[Evidence]:
    """What names of modules say that stand at the beginning of the title, in it, or on the sheet."""
    sure = rules.confidence
    if module := spellings.of(head_of(case.title)):
        yield Evidence(module, sure.bracket, f'title begins with "{head_of(case.title)}"')
    if module := spellings.of(case.source.sheet):
        yield Evidence(module, sure.sheet, f'sheet "{case.source.sheet}"')
    yield from _longest_names(_folded(case.title), spellings.all(), sure.name)


def holds(text: str, keyword: str) -> bool:
    """Whether a folded text holds a keyword: Latin words as a whole, Chinese anywhere.

    >>> holds("blogging in", "login"), holds("user login fails", "Login"), holds("测试登录功能", "登录")
    (False, True, True)
    """
    return bool(_keyword(keyword).search(text))


def _longest_names(title: str, names: Mapping[str, str], confidence: float) -> Iterator[Evidence]:
    """Names in a title; one that lies within another counts for nothing: 登录 in 登录日志."""
    found = [key for key in names if len(key) > 1 and holds(title, key)]
    for key in found:
        if not any(key != other and key in other for other in found):
            yield Evidence(names[key], confidence, f'name "{key}" in the title')


def _from_module(module: ModuleRule, rules: Rules, case: Case, texts: tuple[str, str]) -> Iterator[Evidence]:
    sure = rules.confidence_of(module)
    prefix = prefix_of(case.case_id)
    for wanted in module.id_prefixes:
        if prefix and _is_prefix(wanted, prefix):
            yield Evidence(module.name, sure.id_prefix, f'id prefix "{wanted}"')
    weights = (1.0, rules.thresholds.beside_title)
    yield from _found("keyword", sure.keyword, module, zip(texts, weights, strict=True))
    yield from _found("pattern", sure.pattern, module, zip(texts, weights, strict=True))


def _found(kind: str, sure: float, module: ModuleRule, texts: Iterable[tuple[str, float]]) -> Iterator[Evidence]:
    wanted = module.keywords if kind == "keyword" else module.patterns
    for text, weight in texts:
        for part in wanted:
            if (_keyword(part) if kind == "keyword" else compiled(part)).search(text):
                yield Evidence(module.name, sure * weight, f'{kind} "{part}"')


def _is_prefix(wanted: str, prefix: str) -> bool:
    """Whether a prefix is the wanted one, or begins or ends with it as a whole: LOGIN in TC-LOGIN, not in LOGINS."""
    return bool(re.search(rf"(?:^|[-_. ]){re.escape(wanted.upper().strip('-_. '))}(?:$|[-_. ])", prefix))


@lru_cache(maxsize=5_000)
def _keyword(keyword: str) -> re.Pattern[str]:
    bare = re.escape(_folded(keyword))
    return re.compile(bare if _CJK.search(keyword) else rf"(?<![a-z0-9]){bare}(?![a-z0-9])")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:MOST_TEXT]).casefold()[:MOST_TEXT]
