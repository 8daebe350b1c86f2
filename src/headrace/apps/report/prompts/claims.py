"""Claims about the whole that code can refute: that all passed, that nothing failed, that the product may be released.

Negations, conditions and exceptions ("not all", "once all have passed", "all but 12", 未全部通过) are no such claims,
nor is what is said of a module ("all cases of Login passed") that has no failures indeed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from headrace.apps.report.prompts.prose_numbers import normal

_ALL_PASSED = re.compile(
    r"(?<!of )(?<!in )(?<!after )(?<!before )\b(?:all|every|each|everything)\b(?! but\b)(?:\s+\d+\b)?"
    r"(?:(?!fail|block|error)\D)*?\b(?:pass(?:ed|es)?(?! (?:through|by|on|to|in|rate)\b)|succeed(?:s|ed)?"
    r"|(?:is|are|was|were) (?:successful|green|fine))\b"
    r"|(?:全部|所有|全都|全数|一律)(?:(?!失败|阻塞|未|不|没|除)[^,\d]){0,20}?通过(?!率)"
    r"|用例(?:均|都|皆)(?:已|能|可|成功|顺利)*通过(?!率)"
)
_NONE_FAILED = re.compile(
    r"\b(?:no|zero|without(?: any)?|not a single) (?:test )?(?:failures?|(?:failed|failing) (?:cases?|tests?))\b"
    r"(?! (?:of priority|with|has|have|is|are|was|were))"
    r"|\b(?:no|not a single) (?:test )?(?:cases?|tests?) (?:has |have |is |are )?fail(?:s|ed|ing)?\b"
    r"|\b(?:nothing|none)(?: of (?:them|the cases|the tests))?(?: has| have)? fail(?:s|ed)?\b"
    r"|(?:没有|无|未出现|未发现|零)(?:任何|一个)?(?:测试|用例)*失败(?!原因|信息|说明|记录)|无一失败"
)
_RELEASABLE = re.compile(
    r"\b(?:safe|ready|fit|good)(?: enough)? (?:to|for)(?: be| a| the)? (?:releas|ship|production|go live|deploy)"
    r"|\brelease is (?:safe|ready|fine)\b|\b(?:can|may|should) be (?:released|shipped|deployed)\b"
    r"|(?:可以|可|能够|具备|满足|符合|达到)(?:正式)?(?:发布|上线|放行|交付)"
)
#: Before a claim in its clause, within it, and behind it.
_HEDGED_BEFORE = re.compile(
    r"\b(?:not|never|cannot|unless|until|once|when|if|whether|require[sd]?)\b|n't\b"
    r"|不|未|没有|并非|尚|除|若|如果|待|后[方才再即]?$"
)
_HEDGED_WITHIN = re.compile(r"\b(?:not|never|must|should pass|should all|would|need to|have to)\b|n't\b")
_HEDGED_BEHIND = re.compile(
    r",?\s*(?:\b(?:but(?= for\b| \S*\d)|except|apart from|other than|once|after|if|when|unless|provided|only)\b"
    r"|之前|前提)"
)
_SENTENCE = re.compile(r"[;!?。\n]|\.(?!\d)")


def is_refuted(text: str, *, failing: Mapping[str, int], is_passed: bool) -> bool:
    """Whether a text claims what the figures refute.

    `failing`: how many cases fail, by module. `is_passed`: whether the exit criteria are met.

    >>> is_refuted("All cases passed; the release is safe.", failing={"Cart": 3}, is_passed=False)
    True
    >>> is_refuted("All cases of Login passed.", failing={"Cart": 3, "Login": 0}, is_passed=False)
    False
    """
    counts = {normal(name): count for name, count in failing.items() if name}
    for sentence in _SENTENCE.split(normal(text)):
        if not is_passed and any(_claims(_RELEASABLE, sentence)):
            return True
        claims = [*_claims(_ALL_PASSED, sentence), *_claims(_NONE_FAILED, sentence)]
        if any(failing.values()) and not all(_is_of_good_modules(claim, counts) for claim in claims):
            return True
    return False


def _claims(kind: re.Pattern[str], sentence: str) -> Iterator[str]:
    """Yield the clauses that claim it."""
    for found in kind.finditer(sentence):
        before, behind = sentence[: found.start()], sentence[found.end() :]
        clause = re.split("[,、]", before)[-1]
        if _HEDGED_BEFORE.search(clause) or _HEDGED_WITHIN.search(found.group()) or _HEDGED_BEHIND.match(behind):
            continue
        # "In Login, all cases passed": the place stands in a clause of its own.
        place = re.search(r"(?:\b(?:in|for|of)\b|模块)[^,]*,\s*$", before[: len(before) - len(clause)])
        yield (place.group() if place else "") + clause + found.group() + re.split("[,、]", behind)[0]


def _is_of_good_modules(claim: str, counts: Mapping[str, int]) -> bool:
    named = [count for name, count in counts.items() if name in claim]
    return bool(named) and not any(named)
