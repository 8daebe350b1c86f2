"""What cases whose module is given teach of those whose module is not: id prefixes, heads of titles, sheets, words."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.apps.report.data.cases import Case
from headrace.apps.report.tagging.evidence import Evidence, head_of, prefix_of
from headrace.apps.report.tagging.rules import Rules
from headrace.apps.report.tagging.spelling import key_of

_WORDS = re.compile(r"[一-鿿]+|[a-z][a-z0-9]{2,}")
#: Words that modules of every kind have in their titles.
_COMMON = frozenset(
    {"the", "and", "with", "for", "from", "test", "verify", "check", "case", "user", "can", "not", "without"}
    | {
        "测试",
        "验证",
        "检查",
        "用户",
        "功能",
        "页面",
        "正常",
        "异常",
        "成功",
        "失败",
        "正确",
        "错误",
        "点击",
        "显示",
        "输入",
    }
)
#: A single word decides nothing unless so many given cases have it.
_ALONE = 5

_KINDS: Mapping[str, Callable[[Case], str]] = {
    "id_prefix": lambda case: prefix_of(case.case_id),
    "bracket": lambda case: key_of(head_of(case.title)),
    "sheet": lambda case: case.source.sheet,
}
_NAMES = {"id_prefix": "id prefix", "bracket": "title begins with", "sheet": "sheet"}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A feature that cases of one module have: how many do, and how many cases have it at all."""

    module: str
    agreeing: int
    cases: int

    @property
    def agreement(self) -> float:
        """How sure it is. Three of three are no proof: one for and one against are added (Laplace)."""
        return (self.agreeing + 1) / (self.cases + 2)


class Learned:
    """Lessons of the cases whose module is given, as (case, module)."""

    def __init__(self, given: Sequence[tuple[Case, str]], rules: Rules) -> None:
        self._rules = rules
        # Where all given cases are of one module, everything would teach it.
        taught = given if len({module for _, module in given}) > 1 else ()
        self._features = {
            kind: self._lessons((feature_of(case), module) for case, module in taught)
            for kind, feature_of in _KINDS.items()
        }
        if len({case.source.sheet for case, _ in taught}) < 2:
            self._features["sheet"] = {}
        self._words = self._lessons((word, module) for case, module in taught for word in words_of(case.title))

    def of(self, case: Case) -> Iterator[Evidence]:
        """What they say of another case."""
        for kind, feature_of in _KINDS.items():
            feature = feature_of(case)
            if lesson := self._features[kind].get(feature):
                sure = min(lesson.agreement, getattr(self._rules.confidence, kind))
                rule = f'{_NAMES[kind]} "{feature}" ({lesson.agreeing} of {lesson.cases} given cases)'
                yield Evidence(lesson.module, sure, rule)
        yield from self._of_words(case)

    def _lessons(self, seen: Iterable[tuple[str, str]]) -> dict[str, Lesson]:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for feature, module in seen:
            counts[feature][module] += 1
        lessons: dict[str, Lesson] = {}
        for feature, modules in counts.items():
            module, agreeing = min(modules.items(), key=lambda entry: (-entry[1], entry[0]))
            lesson = Lesson(module, agreeing, modules.total())
            if feature and self._is_enough(lesson):
                lessons[feature] = lesson
        return lessons

    def _is_enough(self, lesson: Lesson) -> bool:
        least = self._rules.thresholds
        return lesson.cases >= least.least_cases and lesson.agreeing / lesson.cases >= least.least_agreement

    def _of_words(self, case: Case) -> Iterator[Evidence]:
        """Words vote; the share of the votes lowers the confidence where they speak for several modules."""
        found = {word: lesson for word in words_of(case.title) if (lesson := self._words.get(word))}
        if not found or (len(found) == 1 and next(iter(found.values())).cases < _ALONE):
            return
        votes: Counter[str] = Counter()
        for lesson in found.values():
            votes[lesson.module] += lesson.agreement * math.log1p(lesson.cases)  # type: ignore[assignment]
        total = sum(votes.values())
        for module, weight in votes.items():
            words = ", ".join(sorted(word for word, lesson in found.items() if lesson.module == module)[:3])
            yield Evidence(module, self._rules.confidence.learned * weight / total, f'learned words "{words}"')


def words_of(title: str) -> set[str]:
    """Words of a title that may tell a module: Latin words, and pairs of Chinese characters.

    >>> sorted(words_of("Verify refund 退款到账"))
    ['refund', '到账', '款到', '退款']
    """
    words: set[str] = set()
    for run in _WORDS.findall(title.casefold()):
        words.update([run] if run.isascii() else [run[at : at + 2] for at in range(len(run) - 1)])
    return words - _COMMON
