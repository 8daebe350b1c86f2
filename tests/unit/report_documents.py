"""Reports as a run would make them: cases in both languages, hostile words, defects, clusters, a report before."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.apps.report.charts import build_charts
from headrace.apps.report.data.cases import (
    Case,
    DataWarning,
    Ingested,
    ParseIssue,
    SheetReport,
    Source,
    Status,
    ValidationReport,
)
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.content import Content, Sentence
from headrace.apps.report.data.defects import DefectFact, Severity
from headrace.apps.report.data.document import Degraded, InputFile, Lang, ReportDocument, RunFacts
from headrace.apps.report.data.modules import Assignment, TaggedBy
from headrace.apps.report.stages import CLUSTERS, DEFECTS, RENDER, TAGGING
from headrace.apps.report.stats import Previous, add_findings, compute_stats
from headrace.apps.report.stats.previous import Point, PreviousCluster

#: What nobody may be hurt by.
NASTY = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "=cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    "]]><svg onload=alert(4)>",
    "{{ 7 * 7 }} {% raw %}",
    "\u202egpj.exe \u2066abc\u2069",
    "شاشة تسجيل الدخول لا تفتح",
    "\N{PARTY POPPER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}",
    "NUL \x00 and \x1b[31m and \ud800 half",
    "javascript:alert(5)",
    "+49 170 \t tab",
    "long " * 8_000,
)
MODULES: dict[Lang, tuple[str, ...]] = {
    "en": ("Checkout", "Login", "Search", "Payments", "User profile", "Notifications", "Reports", "Admin console",
           "Inventory", "Orders and returns of business customers"),
    "zh": ("结算", "登录", "搜索", "支付", "用户资料", "消息通知", "报表", "管理后台", "库存", "企业客户的订单与退货"),
}  # fmt: skip
PEOPLE: dict[Lang, tuple[str, ...]] = {
    "en": ("Ana Petrova", "Chen Wei", "J. O'Neil", "Priya N.", "Tomás Ruiz", ""),
    "zh": ("王芳", "李强", "张伟", "陈静", "刘洋", ""),
}
_FAULTS: dict[Lang, tuple[tuple[str, str, str], ...]] = {
    "en": (
        ("TimeoutError", "gateway did not answer within <n> ms", "The payment gateway times out"),
        ("AssertionError", "expected status <n> but was <n>", "The service answers with another status"),
        ("NullPointerException", "cart is null", "The cart is lost after a refresh"),
        ("", "button <id> is not clickable", "A banner hides the button"),
        ("KeyError", "locale <id>", "Translations are missing"),
        ("ConnectionResetError", "", "The search node drops connections"),
    ),
    "zh": (
        ("TimeoutError", "网关在 <n> 毫秒内没有响应", "支付网关超时"),
        ("AssertionError", "期望状态码 <n>，实际为 <n>", "服务返回了错误的状态码"),
        ("NullPointerException", "购物车为空", "刷新后购物车丢失"),
        ("", "按钮 <id> 无法点击", "横幅遮挡按钮"),
        ("KeyError", "locale <id>", "缺少翻译文本"),
        ("ConnectionResetError", "", "搜索节点断开连接"),
    ),
}
_WORDS: dict[Lang, dict[str, str]] = {
    "en": {
        "title": "Webshop 4.2, regression", "case": "{module}: check that step {n} works for a returning customer",
        "steps": "1. Open the page\n2. Fill in the form\n3. Send it", "expected": "The confirmation is shown",
        "actual": "{fault}; after {n} seconds nothing had happened", "pre": "A customer is signed in",
    },
    "zh": {
        "title": "网上商城 4.2 回归测试", "case": "{module}：验证老客户执行第 {n} 步操作成功",
        "steps": "1. 打开页面\n2. 填写表单\n3. 提交", "expected": "显示确认信息",
        "actual": "{fault}；{n} 秒后仍无响应", "pre": "客户已登录",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """Cases with what later stages would say of them."""

    cases: tuple[Case, ...]
    assignments: tuple[Assignment, ...]
    #: The number of the fault of each failing case.
    faults: dict[str, int]


def make_cases(lang: Lang = "en", count: int = 200, seed: int = 7) -> Made:
    """Return cases and their modules."""
    random = Random(seed)
    cases, assignments, faults = [], [], {}
    for number in range(1, count + 1):
        module = random.choices(MODULES[lang], weights=(20, 18, 14, 14, 9, 7, 6, 5, 4, 3))[0]
        weights = (60, 25, 8, 5, 2) if module in MODULES[lang][:1] else (88, 6, 2, 3, 1)
        status = random.choices(tuple(Status), weights=weights)[0]
        fault = random.choices(range(6), weights=(30, 18, 12, 8, 4, 3))[0]
        case = _case(random, lang, number, (module, status, fault))
        cases.append(case)
        by = random.choices(tuple(TaggedBy)[:3], weights=(80, 15, 5))[0]
        settled = not case.case_id.endswith("77")
        assignments.append(
            Assignment(case_id=case.case_id, module=module, confidence=0.9, by=by, rule='keyword "x"')
            if settled else Assignment(case_id=case.case_id)
        )  # fmt: skip
        if case.fails:
            faults[case.case_id] = fault
    return Made(tuple(cases), tuple(assignments), faults)


def _case(random: Random, lang: Lang, number: int, drawn: tuple[str, Status, int]) -> Case:
    module, status, fault = drawn
    words = _WORDS[lang]
    nasty = NASTY[number % len(NASTY)] if number % 9 == 0 else ""
    failing = status in (Status.FAILED, Status.BLOCKED)
    seconds = random.lognormvariate(2.5, 1.8) if random.random() < 0.9 else None
    day = f"2026-03-{random.randint(2, 6):02d}" if random.random() < 0.92 else None
    return Case(
        case_id=f"TC-{number:04d}" if number % 53 else f"=TC<{number}>&",
        title=nasty or words["case"].format(module=module, n=number),
        module=module,
        priority=random.choices(("P0", "P1", "P2", "P3", ""), weights=(8, 22, 45, 20, 5))[0],
        severity=random.choices(("critical", "major", "minor", "trivial", ""), weights=(8, 25, 40, 15, 12))[0],
        preconditions=words["pre"],
        steps=words["steps"],
        expected=words["expected"],
        actual=(nasty or words["actual"].format(fault=_FAULTS[lang][fault][2], n=number % 30)) if failing else "",
        status=status,
        executor=random.choice(PEOPLE[lang]),
        executed_at=day,
        duration_seconds=round(seconds, 2) if seconds is not None else None,
        environment="staging / Chrome 140" if number % 3 else "",
        defect_id=f"BUG-{number}" if failing and number % 4 == 0 else "",
        remark=nasty,
        error=f"{_FAULTS[lang][fault][0]}: {_FAULTS[lang][fault][1]}" if failing else "",
        source=Source(sheet="Regression" if lang == "en" else "回归测试", row=number + 3),
        extra={"Build": "4.2.0-rc3", "=Reviewer": "@team"} if number % 2 else {},
    )


def make_defects(made: Made, *, by_model: bool = True) -> tuple[DefectFact, ...]:
    """Return a fact for each failing case."""
    facts = []
    for number, case in enumerate(case for case in made.cases if case.fails):
        told = by_model and number % 7 != 6
        severity: Severity = case.severity or "unknown"  # type: ignore[assignment]
        facts.append(
            DefectFact(
                case_id=case.case_id, title=case.title[:200], status=case.status, severity=severity,
                component="Gateway" if told else "", steps=case.steps, expected=case.expected,
                actual=case.actual, environment=case.environment, quote=case.actual[:60] if told else "",
                confidence=0.87 if told else 0.3, source=case.source, by_model=told, llm_failed=not told,
                snippet="" if told else case.actual[:300],
            )
        )  # fmt: skip
    return tuple(facts)


def make_clusters(made: Made, lang: Lang = "en", *, by_model: bool = True) -> tuple[Cluster, ...]:
    """Return the failing cases by their fault, the largest first."""
    by_id = {case.case_id: case for case in made.cases}
    module_of = {one.case_id: one.module for one in made.assignments}
    groups: dict[int, list[str]] = {}
    for case_id, fault in made.faults.items():
        groups.setdefault(fault, []).append(case_id)
    clusters = []
    for fault, ids in sorted(groups.items(), key=lambda item: -len(item[1])):
        exception, message, name = _FAULTS[lang][fault]
        clusters.append(
            Cluster(
                cluster_id=cluster_id(lang, fault), exception=exception, message=message, case_ids=tuple(ids),
                representative=ids[0], modules=Counter(module_of[one] for one in ids),
                severities=Counter(by_id[one].severity or "unknown" for one in ids),
                seen_before=fault % 2 == 0, name=name,
                commonality="Same message and frame <b>in all</b>", named_by_model=by_model,
                systemic_risk="Orders may be charged twice" if by_model else "", evidence=tuple(ids[:3]),
            )
        )  # fmt: skip
    return tuple(clusters)


def cluster_id(lang: Lang, fault: int) -> str:
    """Return the id that a fault has in every report."""
    return "K" + hashlib.sha256(f"{lang}{fault}".encode()).hexdigest()[:8]


def make_previous(made: Made, lang: Lang = "en") -> Previous:
    """Return an earlier report: a tenth of the cases ended otherwise, some were not there yet."""
    random = Random(3)
    kept = [case for case in made.cases if random.random() < 0.95]
    statuses = {
        case.case_id: random.choice((Status.PASSED, Status.FAILED)) if random.random() < 0.1 else case.status
        for case in kept
    }  # fmt: skip
    statuses["TC-OLD"] = Status.FAILED
    module_of = {one.case_id: one.module for one in made.assignments} | {"TC-OLD": "Legacy"}
    modules: dict[str, Counter[str]] = {}
    for case_id, status in statuses.items():
        modules.setdefault(module_of[case_id], Counter())[status] += 1
    point: dict[str, Any] = {"total": 190, "failing": 30, "execution_rate": 95.0}
    history = [
        Point(job_id=f"J{n}", created_at=f"2026-02-{n + 10}T08:00:00Z", pass_rate_of_executed=78.0 + 2.5 * n,
              pass_rate_of_all=74.0 + 2.5 * n, **point)
        for n in range(4)
    ]  # fmt: skip
    return Previous(
        job_id="J3",
        created_at="2026-02-13T08:00:00Z",
        statuses=statuses,
        by_status={status.value: list(statuses.values()).count(status) for status in Status},
        modules={name: dict(counts) for name, counts in modules.items()},
        clusters=tuple(
            PreviousCluster(cluster_id=cluster_id(lang, fault), name=f"fault {fault}") for fault in (0, 2, 4, 9)
        ),
        history=tuple(history),
    )


def validation_of(cases: Sequence[Case], sheet: str) -> ValidationReport:
    """Return what reading the sheet would have told."""
    undated = sum(case.executed_at is None for case in cases)
    return ValidationReport(
        sheets=(
            SheetReport(name=sheet, used=True, header_rows=(3,), columns={"case_id": "Case ID", "status": "Result"},
                        ignored_columns=("Build",), rows=len(cases) + 2, cases=len(cases)),
            SheetReport(name="Notes <i>", used=False, reason="no_header", hidden=True),
        ),
        rows=len(cases) + 2, cases=len(cases), rejected=2, missing={"executed_at": undated},
        issues={"unknown_status": 2, "bad_date": 1},
        warned=(DataWarning(rule="missing_executed_at", count=undated, of=len(cases)),) if undated else (),
    )  # fmt: skip


ISSUES = (
    ParseIssue(sheet="Regression", row=17, column="Result", value="???", rule="unknown_status", message="Not a result"),
    ParseIssue(sheet="Regression", row=19, column="Result", value="<b>", rule="unknown_status", message="Not a result"),
    ParseIssue(sheet="Regression", row=44, column="Date", value="=NOW()", rule="bad_date", message="Not a date"),
)


def content_of(made: Made, clusters: Sequence[Cluster], lang: Lang, *, by_model: bool = True) -> Content:
    """Return sections in words."""
    cites = (clusters[0].cluster_id, clusters[0].representative) if clusters else ()
    say = (
        ("The regression of release 4.2 covers ten modules of the shop.", "Checkout is not ready: the gateway.",
         "Orders may be charged twice <script>alert(6)</script>.")
        if lang == "en"
        else ("本次回归测试覆盖商城 4.2 版本的十个模块。", "结算模块尚未就绪：支付网关超时。", "订单可能被重复扣款。")
    )  # fmt: skip
    return Content(
        objective_and_scope=(Sentence(text=say[0]),),
        conclusions=(Sentence(text=say[1], cites=cites),),
        risks=(Sentence(text=say[2], cites=cites[:1]),),
        modules={MODULES[lang][0]: (Sentence(text=say[1], cites=cites),)},
        by_model=by_model,
        left_out=1,
    )


def ingested_of(made: Made, lang: Lang = "en") -> Ingested:
    """Return what reading would have given."""
    return Ingested(cases=made.cases, issues=ISSUES, validation=validation_of(made.cases, "Regression"))


def document(lang: Lang = "en", count: int = 200, *, degraded: str = "", earlier: bool = True) -> ReportDocument:
    """Return a report. `degraded`: "part" lacks some answers of the model, "whole" has none."""
    made = make_cases(lang, count)
    by_model = degraded != "whole"
    defects = make_defects(made, by_model=by_model)
    clusters = make_clusters(made, lang, by_model=by_model)
    previous = make_previous(made, lang) if earlier else None
    stats = compute_stats(made.cases, made.assignments, previous=previous)
    stats = add_findings(stats, made.assignments, defects, clusters, previous)
    return ReportDocument(
        lang=lang,
        title=_WORDS[lang]["title"],
        input=InputFile(name="regression <4.2>.xlsx", sha256="ab" * 32, size=123_456),
        run=RunFacts(
            job_id="J-7f3a", created_at="2026-03-06T17:20:00Z", tool="headrace 0.1.0", model="tiny-1",
            prompt_version="3", calls=61, reused=4, input_tokens=40_210, output_tokens=9_120, usd=0.0412,
            options={"lang": lang},
        ),
        validation=validation_of(made.cases, made.cases[0].source.sheet if made.cases else "S"),
        stats=stats.model_dump(mode="json"),
        charts=build_charts(stats, clusters, lang),
        content=content_of(made, clusters, lang, by_model=by_model),
        degraded=_degraded(degraded, len(defects), len(clusters)),
        cases=made.cases,
        assignments=made.assignments,
        defects=defects,
        clusters=clusters,
        issues=ISSUES,
    )  # fmt: skip


def _degraded(how: str, defects: int, clusters: int) -> tuple[Degraded, ...]:
    if how == "part":
        return (Degraded(stage=DEFECTS, missing=defects // 7, total=defects, reason="bad_output"),)
    if how != "whole":
        return ()
    why = "provider_down"
    return (
        Degraded(stage=TAGGING, missing=9, total=9, reason=why),
        Degraded(stage=DEFECTS, missing=defects, total=defects, reason=why),
        Degraded(stage=CLUSTERS, missing=clusters, total=clusters, reason=why),
        Degraded(stage=RENDER, missing=3, total=3, reason=why),
    )
