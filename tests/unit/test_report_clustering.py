"""Failures that are one are put together, and no others; ids stay."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.report.clustering import Known, cluster_cases, named, signature_of
from headrace.apps.report.clustering.alike import are_one
from headrace.apps.report.clustering.gathering import gather
from headrace.apps.report.clustering.signature import Signature
from headrace.apps.report.data.cases import Case, Source, Status
from headrace.apps.report.data.defects import DefectFact
from tests.unit.report_failing import failed, prose
from tests.unit.report_labelled import labelled

NPE = "java.lang.NullPointerException: Cannot invoke 'a' because 'b' is null\n\tat com.acme.{}(X.java:1)"
NEAR_MISSES = [
    ("HTTPError: 500 Server Error for url: http://a/b", "HTTPError: 404 Client Error for url: http://a/b"),
    ("AssertionError: assert 500 == 200 for the order", "AssertionError: assert 404 == 200 for the order"),
    ("MySQLException: Deadlock found when trying to get lock", "MySQLException: Lock wait timeout exceeded"),
    (NPE.format("Mail.greet"), NPE.format("Track.url")),
    (NPE.format("Mail.greet"), NPE.format("Mail.remind")),
    ("importer died with exit code 137", "importer died with exit code 2"),
    ("SQLException: ORA-00001: constraint violated", "SQLException: ORA-01400: constraint violated"),
    ("ReadTimeout: no answer from the service in time", "ConnectTimeout: no answer from the service in time"),
]
NEAR_MISSES_IN_PROSE = [
    ("登录失败，提示“系统繁忙请稍后再试”", "支付失败，提示“系统繁忙请稍后再试”"),
    ("点击登录按钮后页面无响应", "点击支付按钮后页面无响应"),
    ("登录失败，提示“用户不存在”", "登录失败，提示“密码错误”"),
    ("已签收的订单显示退货按钮", "已签收的订单没有显示退货按钮"),
    ("接口返回错误码E1001，预期返回0", "接口返回错误码E1002，预期返回0"),
    ("The order is saved after the customer goes back", "The order is not saved after the customer goes back"),
    ("导出的Excel打开后内容为空", "导出的Excel打开后中文显示乱码"),
]


def ids(cases: list[Case], known: Known | None = None) -> dict[str, frozenset[str]]:
    """Cases by the id of their cluster."""
    return {cluster.cluster_id: frozenset(cluster.case_ids) for cluster in cluster_cases(cases, known)}


@pytest.mark.parametrize(("one", "other"), NEAR_MISSES, ids=range(len(NEAR_MISSES)))
def test_near_misses_stay_apart(one: str, other: str) -> None:
    """A false pair hides one bug behind another."""
    assert len(ids([failed("1", one, title="t"), failed("2", other, title="t")])) == 2


@pytest.mark.parametrize(("one", "other"), NEAR_MISSES_IN_PROSE, ids=range(len(NEAR_MISSES_IN_PROSE)))
def test_near_misses_in_prose_stay_apart(one: str, other: str) -> None:
    """The same with what testers write."""
    assert len(ids([prose("1", one, title="t"), prose("2", other, title="t")])) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("点击登录按钮后页面无响应", "点击【登录】按钮后，页面没有响应，刷新后依旧"),
        ("支付失败，提示“支付渠道异常，请稍后再试”", "支付失败，提示“支付渠道异常,请稍后再试”，订单号 20260305"),
        (
            "Amount charged is 9.00 instead of 4.50, the meal is charged twice",
            "Amount charged is 6.00 instead of 3.00; the meal is charged twice.",
        ),
    ],
)
def test_one_failure_in_other_words_is_one(one: str, other: str) -> None:
    """Marks, numbers, ways to say no and words that only one adds make no second cluster."""
    assert len(ids([prose("1", one), prose("2", other)])) == 1


def test_a_text_cut_before_its_frames_joins_and_methods_of_one_class_may() -> None:
    """Unless the exception only says that the program broke."""
    text = "SQLTimeoutException: the pool of connections to the database is empty\n\tat com.acme.{}(X.java:1)"
    whole, cut = failed("1", text.format("Dao.read")), failed("2", text.split("\n")[0])
    assert len(ids([whole, cut])) == 1
    assert len(ids([whole, failed("2", text.format("Dao.write"))])) == 1
    assert len(ids([whole, failed("2", text.format("Cache.read"))])) == 2
    assert len(ids([whole, cut, failed("3", text.format("Cache.read"))])) == 2  # the cut one joins no two


SAID = Signature("IOError", "the page of the order shows an empty list after saving", "a.Dao.read")


@pytest.mark.parametrize(
    ("other", "one"),
    [
        ({}, True),
        ({"exception": "OSError"}, False),
        ({"message": SAID.message + " E1001"}, False),
        ({"message": SAID.message + " again"}, True),
        ({"message": "an empty list shows the page of the order after saving"}, False),
        ({"message": "the order of the page shows an empty list after saving"}, False),
        ({"message": "never " + SAID.message}, False),
        ({"frame": ""}, True),
        ({"frame": "a.Dao.write"}, True),
        ({"frame": "a.Cache.read"}, False),
    ],
    ids=range(10),
)
def test_when_two_signatures_are_one(other: dict[str, str], one: bool) -> None:
    """Type and codes equal, frames that agree, words in their order with others added, none of which says no."""
    assert are_one(SAID, replace(SAID, **other)) is one
    assert are_one(replace(SAID, **other), SAID) is one


def test_short_messages_have_to_be_equal() -> None:
    """One word more is another failure there, though nine of ten letters are the same."""
    short = Signature(message="disk quota of server five reached")
    assert not are_one(short, Signature(message=short.message + " again"))


def test_no_chain_of_small_steps_joins_two_failures() -> None:
    """Each member is one with the seed, not with its neighbour alone."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    more = ["lamda", "mu", "nu", "xi", "omikron", "pi", "rho", "sigma"]
    chain = [Signature(message=" ".join([*words, *more[:count]])) for count in range(9)]
    assert all(are_one(one, other) for one, other in pairwise(chain))
    families = gather(chain)
    assert all(are_one(family.seed, member) for family in families for member in family.members)
    assert len(families) == 2


@pytest.mark.parametrize("seed", range(20))
def test_the_rare_words_find_each_pair(seed: int) -> None:
    """The index leaves out no pair that comparing each with each finds."""
    dice = random.Random(seed)
    words = [f"w{chr(97 + number)}" for number in range(26)]
    texts = {" ".join(word for word in words if dice.random() < 0.9) for _ in range(20)}
    families = gather(Signature(message=text) for text in texts)
    assert sum(len(family.members) for family in families) == len(texts)
    seeds = [family.seed for family in families]
    assert not any(are_one(one, other) for one, other in combinations(seeds, 2))
    assert len(seeds) < len(texts)


def test_the_order_of_the_cases_makes_no_difference() -> None:
    """Not to a letter of the outcome."""
    cases = labelled("tuning")[0]
    first = cluster_cases(cases)
    for seed in range(5):
        assert cluster_cases(random.Random(seed).sample(cases, len(cases))) == first


def test_each_failing_case_is_in_one_cluster_and_the_largest_is_first() -> None:
    """Cases that passed or were skipped are in none."""
    cases = labelled("held_out")[0]
    passed = [case.model_copy(update={"case_id": f"ok-{case.case_id}", "status": Status.PASSED}) for case in cases]
    clusters = cluster_cases([*passed, *cases])
    assert sorted(name for cluster in clusters for name in cluster.case_ids) == sorted(case.case_id for case in cases)
    assert [cluster.size for cluster in clusters] == sorted((cluster.size for cluster in clusters), reverse=True)
    assert all(cluster.representative in cluster.case_ids for cluster in clusters)


def test_modules_and_severities_are_counted() -> None:
    """Assigned modules go before those of the sheet, facts before columns."""
    text = "IOError: the disk of the server is full"
    cases = [failed(str(number), text, module="A", severity="minor") for number in range(3)]
    source = Source(sheet="S", row=2)
    fact = DefectFact(case_id="2", title="", status=Status.FAILED, severity="critical", source=source)
    (cluster,) = cluster_cases(cases, Known(facts={"2": fact}, modules={"0": "B", "1": "B"}))
    assert (cluster.modules, next(iter(cluster.modules))) == ({"B": 2, "A": 1}, "B")
    assert cluster.severities == {"critical": 1, "minor": 2}


def test_the_representative_has_the_commonest_signature() -> None:
    """Not the shortest one."""
    short, long = "支付失败，提示支付渠道异常请稍后再试", "支付失败，提示支付渠道异常请稍后再试，订单号 {}"
    (cluster,) = cluster_cases([prose("1", short), *(prose(str(n), long.format(n)) for n in range(2, 5))])
    assert (cluster.size, cluster.representative) == (4, "2")


def test_names_are_made_by_template_in_both_languages() -> None:
    """With counts by code and at most five cases as evidence."""
    text = "IOError: no space on '{}' of the server"
    cases = [failed(f"T-{n}", text.format(n), module="导入" if n else "Web", severity="critical") for n in range(7)]
    (cluster,) = cluster_cases(cases)
    assert cluster.name == "IOError: no space on <q> of the server [导入]"
    assert cluster.commonality == "7 cases fail in the same way: IOError: no space on <q> of the server."
    assert cluster.systemic_risk.startswith("2 modules are affected, mostly 导入 (6 of 7)")
    assert cluster.systemic_risk.endswith("7 are critical.")
    assert cluster.evidence == ("T-0", "T-1", "T-2", "T-3", "T-4") and not cluster.named_by_model
    assert named(cluster, "zh").commonality == "7 个用例以相同方式失败：IOError: no space on <q> of the server。"
    (alone,) = cluster_cases(cases[:1], lang="zh")
    assert (alone.commonality, alone.evidence) == ("仅有一个用例如此失败：T-0。", ("T-0",))
    assert len(cluster_cases([failed("1", "IOError: " + "very " * 90)])[0].name) <= 120


# Ids


def test_ids_stay_when_members_go_and_others_come() -> None:
    """As long as the signatures of a cluster stay, whatever their counts: no clock, number or row is in an id."""
    cases, _ = labelled("tuning")
    whole = ids(cases)
    of_case = {name: cluster for cluster, names in whole.items() for name in names}
    for seed in range(10):
        dice = random.Random(seed)
        kept_of: dict[Signature, list[Case]] = {}
        for case in cases:
            kept_of.setdefault(signature_of(case), []).append(case)
        kept = [case for group in kept_of.values() for case in dice.sample(group, dice.randint(1, len(group)))]
        new = [failed(f"new-{n}", f"BrandNew{n}Error: something else broke in the cellar") for n in range(3)]
        for cluster, names in ids([*new, *kept]).items():
            assert all(of_case.get(name, cluster) == cluster for name in names)


@given(seed=st.integers(0, 10_000), part=st.floats(0.1, 0.95))
def test_with_the_previous_report_ids_outlive_the_loss_of_any_members(seed: int, part: float) -> None:
    """What is left of a cluster keeps its id, and is seen before; nothing takes the id of another."""
    dice = random.Random(seed)
    cases, _ = labelled("held_out")
    before = cluster_cases(cases)
    of_case = {name: cluster.cluster_id for cluster in before for name in cluster.case_ids}
    kept = dice.sample(cases, max(1, int(len(cases) * part)))
    after = cluster_cases(kept, Known(previous=before))
    assert len({cluster.cluster_id for cluster in after}) == len(after)
    for cluster in after:
        assert {of_case[name] for name in cluster.case_ids} == {cluster.cluster_id}
        assert cluster.seen_before is True


def test_an_id_is_taken_over_by_likeness_where_the_seed_is_gone() -> None:
    """The shortest signature made the id; when its only case passes, the previous report still knows it."""
    short = prose("1", "支付失败，提示支付渠道异常请稍后再试")
    long = prose("2", "支付失败，提示支付渠道异常请稍后再试，订单号 7")
    before = cluster_cases([short, long])
    assert ids([long]) != ids([long], Known(previous=before))
    assert set(ids([long], Known(previous=before))) == {before[0].cluster_id}


def test_an_id_stays_when_a_shorter_variant_comes() -> None:
    """Old seeds come before new ones, and those of two old clusters never join."""
    short = prose("1", "支付失败，提示支付渠道异常请稍后再试")
    long = prose("2", "支付失败，提示支付渠道异常请稍后再试，订单号 7")
    (before,), (other,) = cluster_cases([long]), cluster_cases([short])
    assert set(ids([short, long])) == {other.cluster_id}
    assert set(ids([short, long], Known(previous=(before,)))) == {before.cluster_id}
    both = ids([short, long], Known(previous=(before, other)))
    assert both == {before.cluster_id: frozenset({"2"}), other.cluster_id: frozenset({"1"})}


def test_what_was_not_there_is_new_and_without_a_previous_report_nobody_knows() -> None:
    """`seen_before` is True, False or None."""
    old, new = failed("1", "IOError: the disk of the server is full"), failed("2", "OddError: nobody has seen this yet")
    assert cluster_cases([old])[0].seen_before is None
    seen = {
        cluster.exception: cluster.seen_before
        for cluster in cluster_cases([old, new], Known(previous=cluster_cases([old])))
    }
    assert seen == {"IOError": True, "OddError": False}
    assert cluster_cases([new], Known(previous=()))[0].seen_before is False


def test_an_id_that_was_merged_into_another_was_seen_before() -> None:
    """The report before knew it by another name."""
    (found,) = cluster_cases([failed("1", "IOError: the disk of the server is full")])
    old = found.model_copy(update={"cluster_id": "C-000000000000", "merged": (found.cluster_id,), "exception": "Other"})
    (again,) = cluster_cases([failed("9", "IOError: the disk of the server is full")], Known(previous=(old,)))
    assert (again.cluster_id, again.seen_before) == (found.cluster_id, True)


def test_an_id_is_the_same_in_every_version() -> None:
    """Ids stand in reports that people keep: whoever changes masks on purpose changes this line, and says so."""
    (cluster,) = cluster_cases([failed("1", "TypeError: 'x' is no list\n  File \"shop/cart.py\", line 3, in total")])
    assert cluster.cluster_id == "C-15f6d727d3a3"
