"""Cron rules that are wrong are refused at once, with the field, its rule and what was given."""

from __future__ import annotations

import pytest

from headrace.engine.cron import check_rule
from headrace.model.errors import InvalidInputError
from headrace.model.schedule import CatchUp


@pytest.mark.parametrize(
    ("cron", "field", "says"),
    [
        ("* * * *", "cron", "five fields"),
        ("", "cron", "five fields"),
        ("* * * * * *", "cron", "seconds"),
        ("@daily", "cron", "five fields"),
        (None, "cron", "five fields"),
        (5, "cron", "five fields"),
        ("* " * 400, "cron", "five fields"),
        ("61 * * * *", "cron (minute)", "0 to 59"),
        ("-1 * * * *", "cron (minute)", "0 to 59"),
        ("*/0 * * * *", "cron (minute)", "0 to 59"),
        ("0.5 * * * *", "cron (minute)", "0 to 59"),
        ("1,,2 * * * *", "cron (minute)", "0 to 59"),
        ("5-1 * * * *", "cron (minute)", "0 to 59"),
        ("٣ * * * *", "cron (minute)", "0 to 59"),
        ("*/٣ * * * *", "cron (minute)", "0 to 59"),
        ("*/61 * * * *", "cron (minute)", "steps of at most 60"),
        ("5,10-20/90 * * * *", "cron (minute)", "steps of at most 60"),
        ("* */25 * * *", "cron (hour)", "steps of at most 24"),
        ("* * */32 * *", "cron (day of month)", "steps of at most 31"),
        ("* * * */13 *", "cron (month)", "steps of at most 12"),
        ("* * * * */8", "cron (day of week)", "steps of at most 7"),
        ("* 24 * * *", "cron (hour)", "0 to 23"),
        ("* * 0 * *", "cron (day of month)", "1 to 31"),
        ("* * 32 * *", "cron (day of month)", "1 to 31"),
        ("* * * 13 *", "cron (month)", "1 to 12"),
        ("* * * FOO *", "cron (month)", "JAN to DEC"),
        ("* * * * 8", "cron (day of week)", "SUN to SAT"),
        ("* * * * MON#6", "cron (day of week)", "MON#1"),
        ("* * * * L", "cron (day of week)", "5L"),
    ],
)
def test_a_wrong_expression_names_its_field(cron: object, field: str, says: str) -> None:
    """The error names the field that is wrong, what it may be, and the value."""
    with pytest.raises(InvalidInputError) as caught:
        check_rule(cron)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert says in caught.value.rule


@pytest.mark.parametrize("cron", ["*/60 * * * *", "0 */24 * * *", "0 0 */31 * *", "0 0 1 */12 *", "0 0 * * */7"])
def test_the_largest_step_is_the_whole_field(cron: str) -> None:
    """Every 60 minutes is once an hour; beyond that a step says something that it does not do."""
    assert check_rule(cron).expression == cron


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30 2 *", "* * 31 4,6,9,11 *", "0 0 */20 * 1L"])
def test_a_rule_that_never_fires_is_refused(cron: str) -> None:
    """A day that does not come is an error at once, and no schedule that waits for ever."""
    with pytest.raises(InvalidInputError, match="never fires"):
        check_rule(cron)


def test_a_leap_day_fires() -> None:
    """29 February comes, if rarely, also when it has to be a Monday."""
    assert check_rule("0 0 29 2 *").expression == "0 0 29 2 *"
    assert check_rule("0 0 */29 2 1").expression == "0 0 */29 2 1"


@pytest.mark.parametrize("tz", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "utc\0", None, 3])
def test_an_unknown_zone_is_refused(tz: object) -> None:
    """Only names of the IANA database are zones; no path, no folder, no other value."""
    with pytest.raises(InvalidInputError) as caught:
        check_rule("0 3 * * *", tz=tz)  # type: ignore[arg-type]
    assert caught.value.field == "tz"
    assert "Europe/Berlin" in caught.value.rule


@pytest.mark.parametrize("value", ["some", "", None, 1])
def test_an_unknown_catch_up_policy_is_refused(value: object) -> None:
    """The three policies are named."""
    with pytest.raises(InvalidInputError, match="catch_up must be one of skip, one, all"):
        check_rule("0 3 * * *", catch_up=value)  # type: ignore[arg-type]


def test_a_rule_keeps_what_it_was_given() -> None:
    """Blanks do not matter to what fires."""
    rule = check_rule(" 0  3 * * * ", tz="Europe/Berlin", catch_up="one")
    assert (rule.text, rule.catch_up) == ("0 3 * * * Europe/Berlin", CatchUp.ONE)
