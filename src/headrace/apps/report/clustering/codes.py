"""Numbers that tell failures apart: HTTP statuses and codes of errors. They outlive the masks.

Their digits are written as characters of the private use area while the masks work, and turned back at the end.
"""

from __future__ import annotations

import re

_FIRST = 0xE000
_HIDE = str.maketrans({str(digit): chr(_FIRST + digit) for digit in range(10)})
_SHOW = str.maketrans({chr(_FIRST + digit): str(digit) for digit in range(10)})
#: A code while it is hidden.
HIDDEN = re.compile(rf"[A-Za-z]*[-_]?[{chr(_FIRST)}-{chr(_FIRST + 9)}]+(?:[A-Za-z{chr(_FIRST)}-{chr(_FIRST + 9)}]*)")

_STATUS = r"[1-5]\d\d(?![\w.]\d|\d)"
_HTTP = "|".join(
    (
        rf"\bHTTP(?:/[\d.]+)?(?: status| error| code)*\W{{0,3}}{_STATUS}",
        rf"\bstatus(?:[ _-]?code)?\W{{0,4}}(?:of |is |was )?{_STATUS}",
        rf"\bresponse (?:code|status)?\W{{0,3}}{_STATUS}",
        rf"<Response \[{_STATUS}\]>",
        rf"\b{_STATUS} (?:Client Error|Server Error|Internal Server Error|Not Found|Bad Gateway|Bad Request|Forbidden)",
        rf"\b{_STATUS} (?:Service Unavailable|Gateway Time-?out|Unauthorized|Conflict|Too Many Requests)",
        rf"状态码\D{{0,6}}{_STATUS}",
        rf"(?:接口|请求|服务|服务器)\D{{0,4}}(?:返回|报错?|响应)\D{{0,3}}{_STATUS}(?!\s*[元条个])",
    )
)
_OTHERS = "|".join(
    (
        # Families whose number is the kind of error. Other words with a number are ids of records: TC-123, ORD_99.
        r"(?<![A-Za-z0-9_])(?:ORA|TNS|PLS|SQL|DB2|ERR)[-_]?\d+[A-Z]?(?![A-Za-z0-9_-])",
        r"(?<![A-Za-z0-9_-])(?:E\d{3,6}|(?:CS|TS|MSB|NU|NETSDK)\d{4})(?![A-Za-z0-9_-])",
        r"\b(?:WinError|Errno)[ =:]{1,2}\d+",
        r"\bSQL ?STATE\W{0,3}[0-9A-Z]{5}\b",
        r"\b(?:exit(?:ed)?(?: with)?(?: code| status)?|exit status|signal|errno)\W{0,3}\d{1,3}\b",
        r"\b(?:error|err|return|result)[ _-]?code\W{0,4}(?:is |was )?-?[A-Za-z]{0,4}[-_]?\d+",
        r"(?:错误码|错误代码|返回码|异常码)\W{0,3}(?:为|是)?\s?-?[A-Za-z]{0,4}[-_]?\d+",
        r"\b0x[89cC][0-9A-Fa-f]{7}\b(?! *\))",
    )
)
_CODES = re.compile(f"{_HTTP}|{_OTHERS}", re.IGNORECASE)
# "assert 401 == 200" names no status, but these two numbers side by side are nothing else.
_GOOD = r"20[0-6]"
_BAD = r"(?:4(?:0[0-9]|1[0-8]|2[2-9])|50[0-9])"
_GAP = r"(?:\W|[A-Za-z一-鿿]){1,24}?"
_COMPARED = re.compile(
    rf"(?<![\d.,]){_GOOD}{_GAP}{_BAD}(?![\d.,]\d|\d|\s*元)|(?<![\d.,]){_BAD}{_GAP}{_GOOD}(?![\d.,]\d|\d|\s*元)"
)
_HTTP_STATUS = re.compile(r"(?<!\d)[1-5]\d\d(?!\d)")


def hide(text: str) -> str:
    """Write the digits of codes as characters that no mask touches."""
    return _COMPARED.sub(_hidden, _CODES.sub(_hidden, text))


def show(text: str) -> str:
    """Turn hidden digits back.

    >>> show(hide("HTTP 503, order 77"))
    'HTTP 503, order 77'
    """
    return text.translate(_SHOW)


def http_status(text: str) -> str:
    """The HTTP status that a text names, the worst of several; or empty.

    >>> http_status("assert 404 == 200"), http_status("404 rows")
    ('404', '')
    """
    named = [found for pattern in (_HTTP_PATTERN, _COMPARED) for found in pattern.findall(text)]
    statuses = [status for part in named for status in _HTTP_STATUS.findall(part)]
    return max(statuses, default="")


_HTTP_PATTERN = re.compile(_HTTP, re.IGNORECASE)


def _hidden(found: re.Match[str]) -> str:
    return found[0].translate(_HIDE)
