"""What is read from the texts of failures: exception, message, frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.report.clustering import signature_of
from headrace.apps.report.data.cases import Source, Status
from headrace.apps.report.data.defects import DefectFact
from tests.unit.report_failing import failed, prose

JAVA = """org.springframework.dao.DataAccessException: wrapped; nested exception is java.sql.SQLException: no
\tat org.springframework.jdbc.Translator.translate(Translator.java:7)
\tat com.acme.shop.Orders.place(Orders.java:143)
Caused by: java.sql.SQLTimeoutException: Query 'q' timed out after 30 s in the pool of connections
\tat com.mysql.cj.jdbc.Statement.run(Statement.java:1)
\tat com.acme.shop.Dao$1.lambda$find(Dao.java:{line})
\t... 41 more"""
PYTHON = """Traceback (most recent call last):
  File "shop/db.py", line 5, in connect
    open()
ConnectionRefusedError: [Errno 111] Connection refused by 'db'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "shop/orders.py", line 9, in place
shop.errors.OrderFailed: no order"""
AFTER = """Traceback (most recent call last):
  File "shop/cache.py", line 5, in get
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "tests/test_orders.py", line 3, in test_it
  File "shop/main.py", line 3, in run
  File "shop/orders.py", line {line}, in place
  File "/usr/lib/python3/dist-packages/requests/api.py", line 1, in get
requests.exceptions.ConnectTimeout: no answer of 10.0.0.1 in 30 s"""
SCRIPT = """TypeError: Cannot read properties of undefined (reading 'length')
    at Object.<anonymous> (/app/node_modules/jest/run.js:1:1)
    at async Cart.total (/app/src/cart.js:{line}:21)
    at /app/test/cart.test.js:9:1"""
SHARP = """System.AggregateException: One or more. ---> System.IO.FileNotFoundException: Could not find 'x'
   at System.IO.FileStream.Open(SafeFileHandle handle)
   at School.Reports.Licence.Load(String path) in C:\\src\\Licence.cs:line {line}
   --- End of inner exception stack trace ---
   at School.Reports.Main.Run()"""
GO = """panic: runtime error: index out of range [0] with length 0

goroutine 19 [running]:
runtime.throw({0x6f1b2c, 0x15})
\t/usr/local/go/src/runtime/panic.go:1198 +0x71
school.example/plan.(*Plan).first(0xc0000b4000)
\t/src/plan/plan.go:{line} +0x2b"""
PYTEST = """    def test_total():
>       assert cart.total() == 3
E       AssertionError: the total of the cart is wrong by one

shop/cart.py:{line}: in total"""


@pytest.mark.parametrize(
    ("text", "exception", "message", "frame"),
    [
        (JAVA, "SQLTimeoutException", "Query <q> timed out after <t> in the pool of connections", "com.acme.shop.Dao"),
        (PYTHON, "ConnectionRefusedError", "[Errno 111] Connection refused by <q>", "db.py:connect"),
        (AFTER, "ConnectTimeout", "no answer of <ip> in <t>", "orders.py:place"),
        (SCRIPT, "TypeError", "Cannot read properties of undefined <data>", "cart.js:Cart.total"),
        (SHARP, "FileNotFoundException", "Could not find <q>", "School.Reports.Licence.Load"),
        (GO, "panic", "runtime error: index out of range [<n>] with length <n>", "school.example/plan.(*Plan).first"),
        (PYTEST, "AssertionError", "the total of the cart is wrong by one", "cart.py:total"),
    ],
    ids=["java", "python", "after", "javascript", "csharp", "go", "pytest"],
)
def test_each_language_is_read(text: str, exception: str, message: str, frame: str) -> None:
    """The innermost cause, its message without data, and the innermost frame that is not of a framework."""
    found = signature_of(failed("T-1", text.replace("{line}", "88")))
    assert (found.exception, found.message) == (exception, message)
    assert found.frame.startswith(frame)
    assert signature_of(failed("T-1", text.replace("{line}", "99"))) == found  # lines move with every commit


def test_what_a_person_wrote_may_name_an_exception() -> None:
    """Testers paste a part of the log."""
    found = signature_of(
        prose("T-1", "点击保存后报错 java.lang.NullPointerException: order of customer missing in cart")
    )
    assert (found.exception, found.message) == ("NullPointerException", "order of customer missing in cart")


def test_the_status_is_read_from_the_message() -> None:
    """Of the message alone: a page of a log names many."""
    assert signature_of(failed("T-1", "HTTPError: 503 Server Error for url: http://a/b")).status == "503"


def test_the_frame_of_a_test_counts_only_where_the_message_says_nothing() -> None:
    """One cause fails in many tests, but `assert False` says nothing without its place."""
    text = 'Traceback (most recent call last):\n  File "tests/test_{}.py", line 1, in test_it\nAssertionError: {}'
    telling = "the inventory service does not answer to reservations"
    assert signature_of(failed("1", text.format("a", telling))) == signature_of(failed("2", text.format("b", telling)))
    first, second = (signature_of(failed("1", text.format(name, "no"), title="same")) for name in "ab")
    assert (first.frame, second.frame) == ("test_a.py:test_it", "test_b.py:test_it")


def test_a_text_that_says_little_is_read_with_the_title() -> None:
    """与预期不符 may be any bug; of two cases it is two."""
    first, second = (signature_of(prose("T", "与预期不符", title=title)) for title in ("导出报表", "修改头像"))
    assert (first.message, second.message) == ("导出报表: 与预期不符", "修改头像: 与预期不符")
    assert signature_of(failed("T-1")).message == "T-1"


def test_texts_of_a_defect_stand_in_for_those_of_the_case() -> None:
    """Error first, then the actual result, the remark, and what the model told."""
    fact = DefectFact(
        case_id="T-1", title="", status=Status.FAILED, actual="退款成功后余额没有增加", source=Source(sheet="S", row=2)
    )
    assert signature_of(failed("T-1"), fact).message == "退款成功后余额没有增加"
    assert signature_of(failed("T-1", remark="保存地址后门牌号丢失"), fact).message == "保存地址后门牌号丢失"
    both = failed("T-1", "IOError: the disk of the server is full", actual="保存地址后门牌号丢失")
    assert signature_of(both, fact).exception == "IOError"


@given(error=st.text(max_size=200), actual=st.text(max_size=200))
def test_any_text_has_a_signature_that_is_not_empty(error: str, actual: str) -> None:
    """Whatever a cell holds."""
    found = signature_of(failed("T-1", error, actual=actual))
    assert found.exception or found.message or found.frame
    assert signature_of(failed("T-1", error, actual=actual)) == found


def test_noise_beside_the_message_is_left_out() -> None:
    """Sessions, builds and rows of data vary with each run."""
    first = "NoSuchElementException: Message: no such element in the page\n  (Session info: chrome=133.0)"
    second = "NoSuchElementException: Message: no such element in the page\nBuild info: version: '3.0.1'"
    assert signature_of(failed("1", first)) == signature_of(failed("2", second))
