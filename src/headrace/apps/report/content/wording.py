"""The words of the template, in the languages of reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Sentences with places for figures."""

    scope: str
    counts: str
    cluster: str
    blocked: str
    skipped: str
    unclear: str
    urgent: str
    module: str
    unknown: str


WORDS = {
    "en": Words(
        scope="The run covers {cases} test cases of {modules} modules.",
        counts=(
            "{passed} cases passed, {failed} failed, {blocked} are blocked, {skipped} were not run, and {unknown} "
            "say no result; the pass rate of executed cases is {rate}."
        ),
        cluster="{name}: {size} failing cases.",
        blocked="{count} cases are blocked: what they test is not known.",
        skipped="{count} cases were not run.",
        unclear="{count} cases have no result that could be read.",
        urgent="{count} cases of priority P0 or P1 fail.",
        module="{module}: {failing} of {total} cases fail or are blocked.",
        unknown="unknown",
    ),
    "zh": Words(
        scope="本次测试共 {cases} 个用例，涉及 {modules} 个模块。",
        counts=(
            "通过 {passed} 个，失败 {failed} 个，阻塞 {blocked} 个，未执行 {skipped} 个，无结果 {unknown} 个；"
            "已执行用例通过率 {rate}。"
        ),
        cluster="{name}：{size} 个失败用例。",
        blocked="{count} 个用例被阻塞，其功能状态未知。",
        skipped="{count} 个用例未执行。",
        unclear="{count} 个用例的结果无法识别。",
        urgent="{count} 个 P0/P1 用例未通过。",
        module="{module}：{total} 个用例中 {failing} 个失败或阻塞。",
        unknown="未知",
    ),
}
