"""Which module each case belongs to, without a model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headrace.apps.report.data.cases import Case, Source
from headrace.apps.report.data.modules import UNCATEGORIZED, Assignment, TaggedBy
from headrace.apps.report.tagging import DEFAULT_RULES, ModuleRule, Rules, load_rules, tag_cases

RULES = load_rules(Path(__file__).parent / "report_rules.yaml")


def case(case_id: str, title: str = "", module: str = "", **more: str) -> Case:
    """A case; `sheet` names its sheet."""
    source = Source(sheet=more.pop("sheet", "Cases"), row=2)
    return Case(case_id=case_id, title=title, module=module, source=source, **more)


def tagged(wanted: Case, *given: Case, rules: Rules = DEFAULT_RULES) -> Assignment:
    """What becomes of a case beside others."""
    return tag_cases([*given, wanted], rules)[-1]


def given(module: str, count: int, title: str = "", prefix: str = "X") -> list[Case]:
    """Cases with a module."""
    return [case(f"{prefix}-{module}{number}", title.format(n=number), module) for number in range(count)]


def test_the_module_of_the_sheet_comes_first() -> None:
    """What the sheet says is taken at its word, whatever keywords say."""
    found = tagged(case("PAY-1", "pay by card", "Login"), rules=RULES)
    assert (found.module, found.confidence, found.by) == ("Login", 1.0, TaggedBy.GIVEN)


@pytest.mark.parametrize("spelling", ["登录模块", " 登录 ", "SIGN-IN", "ｌｏｇｉｎ"])
def test_aliases_become_the_name_of_the_rules(spelling: str) -> None:
    """Aliases, width and case make no second module."""
    assert tagged(case("T-1", module=spelling), rules=RULES).module == "Login"


@pytest.mark.parametrize("spelling", ["shop / cart", "SHOP/CART", "Shop > Cart", "Ｓｈｏｐ／Cart", "Shop/Cart/"])
def test_spellings_of_a_path_become_the_most_frequent_one(spelling: str) -> None:
    """Without rules the sheet's own majority names the module."""
    assert tagged(case("T-1", module=spelling), *given("Shop/Cart", 2)).module == "Shop/Cart"


def test_a_step_of_a_path_may_be_an_alias() -> None:
    """登录模块/短信 and Login/短信 are one module."""
    cases = [case("T-1", module="登录模块/短信"), case("T-2", module="Login/短信"), case("T-3", module="Login/短信")]
    assert {assignment.module for assignment in tag_cases(cases, RULES)} == {"Login/短信"}


@pytest.mark.parametrize("nothing", ["", "-", "N/A", "无", "未分类"])
def test_a_cell_that_says_nothing_is_no_module(nothing: str) -> None:
    """Such a case is one for rules and the model."""
    found = tagged(case("T-1", module=nothing))
    assert (found.module, found.confidence, found.is_settled) == (UNCATEGORIZED, 0.0, False)


def test_id_prefixes_are_learned_from_three_cases_that_agree() -> None:
    """The confidence comes of the agreement: three of three are less sure than twenty of twenty."""
    others = [case("9", module="Other")]
    few = [case(f"LG-{number}", module="Login") for number in range(3)]
    many = [case(f"LG-{number}", module="Login") for number in range(20)]
    found = tagged(case("LG-99", "something"), *few, *others)
    assert (found.module, found.by, found.confidence) == ("Login", TaggedBy.RULE, 0.8)
    assert found.rule == 'id prefix "LG" (3 of 3 given cases)'
    assert tagged(case("LG-99"), *many, *others).confidence == 0.95  # 21 of 22, but no more than rules allow


def test_two_cases_teach_no_prefix_and_neither_do_cases_that_disagree() -> None:
    """TC-1 … TC-900 are of all modules, so that TC says nothing."""
    other = case("9", module="Other")
    two = [case(f"LG-{number}", module="Login") for number in range(2)]
    assert not tagged(case("LG-99"), *two, other).is_settled
    mixed = [case(f"TC-{number}", module="Login" if number < 8 else "Cart") for number in range(10)]
    assert not tagged(case("TC-99"), *mixed).is_settled


def test_one_module_alone_teaches_nothing() -> None:
    """If all given cases are of one module, everything they have would point to it."""
    assert not tagged(case("TC-99", "x"), *[case(f"TC-{number}", module="Login") for number in range(9)]).is_settled


@pytest.mark.parametrize("title", ["[Login] wrong password", "【登录】密码错误", "Login: wrong", "登录-密码错误"])
def test_a_title_that_begins_with_a_module_names_it(title: str) -> None:
    """In brackets, or before a colon or a dash."""
    assert tagged(case("1", title), rules=RULES).module == "Login"


def test_brackets_are_learned() -> None:
    """[UI-7] names no module, but cases with a module show what it stands for."""
    taught = [case(str(number), f"【前台】步骤{number}", "商城") for number in range(5)]
    found = tagged(case("99", "【前台】别的"), *taught, case("9", module="后台"))
    assert (found.module, found.rule) == ("商城", 'title begins with "前台" (5 of 5 given cases)')


def test_the_sheet_may_be_the_module() -> None:
    """Workbooks with a sheet per module say it once."""
    assert tagged(case("1", "x", sheet="支付"), rules=RULES).module == "Payment"
    taught = [case(str(number), "x", "Login", sheet="L") for number in range(4)]
    assert tagged(case("99", "x", sheet="L"), *taught, case("8", "x", "Pay", sheet="P")).module == "Login"
    one_sheet = [case(str(number), "x", "Login") for number in range(40)]
    assert not tagged(case("99", "x"), *one_sheet, case("8", "x", "Pay")).is_settled


@pytest.mark.parametrize(
    ("title", "module"),
    [("Research of prices", ""), ("The login page", "Login"), ("忘记密码", "Login"), ("Pay by invoice", "Payment")],
)
def test_keywords_and_patterns_of_the_rules(title: str, module: str) -> None:
    """Latin keywords are whole words; Chinese has none."""
    found = tagged(case("1", title), rules=RULES)
    assert (found.module if found.is_settled else "") == module


def test_a_keyword_beside_the_title_counts_less() -> None:
    """Steps mention modules on their way."""
    inside = tagged(case("1", steps="open the login page"), rules=RULES)
    assert (inside.module, inside.confidence) == ("Login", 0.64)
    both = tagged(case("1", "refund of an order", steps="open the login page"), rules=RULES)
    assert both.module == "Payment"


def test_a_conflict_is_left_to_the_model_with_its_candidates() -> None:
    """Two modules with close confidence: no coin is thrown."""
    found = tagged(case("1", "payment after login"), rules=RULES)
    assert (found.by, found.module, found.confidence) == (TaggedBy.NOBODY, UNCATEGORIZED, 0.0)
    assert set(found.candidates) == {"Login", "Payment"}
    assert found.rule.startswith("conflict: ")


def test_weak_evidence_is_left_to_the_model() -> None:
    """Below `settle` a hint stays a candidate."""
    strict = Rules.model_validate({**RULES.model_dump(), "thresholds": {"settle": 0.85}})
    found = tagged(case("1", "login"), rules=strict)
    assert (found.is_settled, found.candidates) == (False, ("Login",))
    assert not found.is_settled


def test_confidence_may_be_set_for_a_module() -> None:
    """A module whose keywords are vague may say so."""
    vague = ModuleRule.model_validate({"name": "Misc", "keywords": ["page"], "confidence": {"keyword": 0.3}})
    assert not tagged(case("1", "The page"), rules=Rules(modules=(vague,))).is_settled


def test_words_of_titles_are_learned_conservatively() -> None:
    """A word that only one module's titles have tells it, with less confidence; a word of two modules does not."""
    taught = given("Warehouse", 6, "Pallet {n} moves to the aisle") + given("Shop", 6, "Customer {n} buys")
    found = tagged(case("1", "Pallet falls off the aisle"), *taught)
    assert (found.module, found.by, found.confidence) == ("Warehouse", TaggedBy.RULE, 0.7)
    assert found.rule == 'learned words "aisle, pallet"'
    assert not tagged(case("1", "Pallet of a customer"), *taught).is_settled
    torn = tagged(case("1", "Pallet in the aisle of a customer"), *taught)
    assert torn.rule.startswith("too weak") and torn.candidates == ("Warehouse", "Shop")  # two words against one


def test_one_learned_word_of_few_cases_decides_nothing() -> None:
    """Three titles may share a word by chance."""
    taught = given("Warehouse", 3, "Pallet") + given("Shop", 6, "Customer {n} buys")
    assert not tagged(case("1", "Pallet falls"), *taught).is_settled


def test_a_name_within_a_longer_name_does_not_count() -> None:
    """登录日志 is a module of its own beside 登录."""
    taught = given("登录", 1) + given("登录日志", 1)
    assert tagged(case("1", "导出登录日志"), *taught).module == "登录日志"


SUBJECTS = {
    "登录": ["密码错误提示", "短信验证码登录", "第三方账号登录", "记住密码", "退出登录后返回", "锁定账号后登录"],
    "购物车": ["加入购物车", "修改购物车商品数量", "清空购物车", "购物车结算金额", "购物车失效商品", "合并购物车"],
    "支付": ["微信支付成功", "支付宝支付取消", "余额不足支付", "支付超时关闭", "退款原路返回", "重复支付拦截"],
    "订单": ["订单列表翻页", "取消待付款订单", "订单详情地址", "确认收货", "订单备注长度", "导出订单"],
}


def realistic_sheet() -> list[Case]:
    """240 cases as teams write them: a third has a module, in several spellings; ids and brackets come and go."""
    dice = random.Random(5)
    cases = []
    for number in range(240):
        module = dice.choice(list(SUBJECTS))
        subject = f"{dice.choice(SUBJECTS[module])}_{number}"
        title = f"【{module}】{subject}" if dice.random() < 0.25 else subject
        prefix = {"登录": "DL", "购物车": "GWC", "支付": "ZF", "订单": "DD"}[module] if dice.random() < 0.4 else "TC"
        cell = dice.choice([module, module, f" {module}", f"{module} "]) if dice.random() < 0.33 else ""
        cases.append(case(f"{prefix}-{number:03}", title, cell, remark=module))
    return cases


def test_four_of_five_cases_of_a_realistic_sheet_need_no_model_and_hardly_any_is_wrong() -> None:
    """Without a rules file, from what the sheet itself says."""
    cases = realistic_sheet()
    assignments = tag_cases(cases)
    settled = [(one, assignment) for one, assignment in zip(cases, assignments, strict=True) if assignment.is_settled]
    right = [one for one, assignment in settled if assignment.module == one.remark]
    assert sum(1 for one in cases if one.module) < 100
    assert len(settled) / len(cases) >= 0.8
    assert len(right) / len(settled) >= 0.98


def test_no_title_breaks_it() -> None:
    """Odd texts give an assignment for each case, in order."""
    cases = [case(f"{number}", title) for number, title in enumerate(["", "[", "【】", "：", "\u0000", "💥" * 900])]
    assert [assignment.case_id for assignment in tag_cases(cases, RULES)] == [one.case_id for one in cases]
