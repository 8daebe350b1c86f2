"""What is masked in a text of a failure, and what stays because it tells failures apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.report.clustering import mask, signature_of
from headrace.apps.report.clustering.wording import codes_of, tokens_of
from tests.effort import bounded_work
from tests.unit.report_failing import failed


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no 'a b', \"c\", `d`, “e”, ‘f’, 「g」, 『h』 or 《i》", "no <q>, <q>, <q>, <q>, <q>, <q>, <q> or <q>"),
        ("can't open it's 'a' and don't", "can't open it's <q> and don't"),
        ("the user's name isn't 'Lin's'", "the user's name isn't <q>"),
        ("got b'x y' and f'z'", "got <q> and <q>"),
        ("用户'张三'不存在", "用户<q>不存在"),
        ("took 3.5s, 10 minutes, 30000ms", "took <t>, <t>, <t>"),
        ("等待30秒，等了半小时，卡住5分钟", "等待<t>,等了<t>,卡住<t>"),
        ("at 2026-03-05T10:30:55.123Z and 10:30 pm", "at <time> and <time>"),
        ("2026年3月5日 10:30 和 3月5日 和 上午10点", "<time> 和 <time> 和 <time>"),
        ("id 0b0e4b6a-e123-4f7e-8a35-3a7f4d0b9d52 at 0xBEEF", "id <uuid> at <hex>"),
        ("TC-123, ORD_99, TC-LOGIN-7 and user_1_b", "<id>, <id>, <id> and <id>"),
        ("订单TC-123失败", "订单<id>失败"),
        ("in /var/log/x.log, C:\\logs\\a.txt and src/app/main", "in <path>, <path> and <path>"),
        ("https://a.b/c?d=1, mail a.b@c.cn", "<url> mail <email>"),
        ("10.0.0.1:80 and fe80:0:0:0:1", "<ip> and <ip>"),
        ("v1.2.3 and 133.0.6943.53-beta", "<version> and <version>"),
        ("commit deadbeef1234 token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "commit <hex> token <hash>"),
        ("-5 of 1,000.50 rows, 总额119.99元", "<n> of <n> rows, 总额<n>元"),
        ("got {'a': 1, 'b': [2]} not ['x', 'y']", "got <data> not <data>"),
        ('<div class="x">a</div> List<String>', "<tag>a<tag> List<String>"),
        ("\x1b[31mred\x1b[0m   text\n", "red text"),
        ("ＦＵＬＬ　ｗｉｄｔｈ：１２", "FULL width:<n>"),
    ],
)
def test_what_varies_is_masked(text: str, masked: str) -> None:
    """Each kind by an example."""
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 500",
        "HTTP/1.1 404",
        "503 Server Error: Service Unavailable",
        "failed with status code 429",
        "statusCode: 502",
        "assert 401 == 200",
        "期望200实际500",
        "状态码:404",
        "接口返回500",
        "ORA-00001: unique constraint",
        "SQLSTATE[23000]",
        "SQLState: 40P01",
        "[Errno 28] No space left",
        "WinError 5",
        "died with exit code 137",
        "接口返回错误码E1001",
        "error code: -204",
        "错误码为 10086",
        "error CS0246",
        "error 0x80070005",
    ],
)
def test_codes_of_errors_stay(text: str) -> None:
    """Statuses and codes are kinds of failures, not data."""
    assert mask(text) == text


@pytest.mark.parametrize(
    "text", ["404 rows", "应为200元,实际500元", "order 500", "page 404 of 500", "2 != 3", "总数500"]
)
def test_numbers_that_only_look_like_codes_are_masked(text: str) -> None:
    """A number is a code by what stands beside it."""
    assert not codes_of(tokens_of(mask(text)))


def test_codes_survive_inside_quotes_and_tags() -> None:
    """The quoted part goes, its code does not."""
    assert mask("got 'HTTP 500'") != mask("got 'HTTP 404'")
    assert "401" in mask("where <Response [401]>")


def test_words_that_a_tester_quotes_stay() -> None:
    """They name what is on the screen; only what looks like data is masked."""
    texts = ["点击“登录”按钮", '点击"登录"按钮', "点击【登录】按钮", "点击「登录」按钮", "点击登录按钮"]
    assert {mask(text, prose=True) for text in texts} == {"点击登录按钮"}
    assert mask("登录失败，提示“用户不存在”", prose=True) != mask("登录失败，提示“密码错误”", prose=True)
    assert mask("用户“u_17@x”不存在", prose=True) == "用户<q>不存在"


def test_what_a_locator_names_stays() -> None:
    """Two buttons that are not found are two failures."""
    texts = [
        "waiting for getByRole('button', {{ name: '{}' }})",
        'no such element: {{"method":"css selector","selector":"#{}"}}',
        'waiting for get_by_test_id("{}")',
        "waiting for locator('#{}')",
    ]
    for text in texts:
        assert tokens_of(mask(text.format("pay"))) != tokens_of(mask(text.format("menu"))), text


def test_ways_to_say_no_are_one() -> None:
    """没有, 未 and 没 are one word to the comparison, and the shortened English one is found."""
    assert len({tokens_of(text) for text in ("页面没有响应", "页面未响应", "页面没响应", "页面无响应")}) == 1
    assert "not" in tokens_of("it doesn't open")


@given(st.text(max_size=300), st.booleans())
def test_any_text_is_masked_without_digits_but_of_codes(text: str, prose: bool) -> None:
    """It never fails, is one line, and holds no character that stands for a hidden digit."""
    masked = mask(text, prose=prose)
    assert "\n" not in masked
    if not any("\ue000" <= sign <= "\ue009" for sign in text):
        assert not any("\ue000" <= sign <= "\ue009" for sign in masked)


ODD = ["a", "1", "'", '"', "(", "[", "{", "<", "<a", "/a", "\\", "A.", "1.", "1,", "1:", "a-", "a@", "http://"]
ODD += ["200 ", "at a(", 'File "', "Caused by: A", "中", "1年", "status ", " ", "\t", '"a\\', "{<q>", "C:\\a\\"]


@pytest.mark.parametrize("odd", ODD)
def test_no_text_is_slow(odd: str) -> None:
    """A cell may hold 32,767 characters of anything."""
    text = odd * (32_000 // len(odd)) + "!"
    with bounded_work(1):
        signature_of(failed("T-1", text))
        signature_of(failed("T-1", "ValueError: " + text))
        signature_of(failed("T-1", actual=text))
