"""Frames of stack traces: where in the application it failed. Line numbers change with every commit and are dropped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FILE = r"(?P<file>[^\s()]+?)"
#: Kinds of frames by how their lines begin: no line is tried with all.
_AT = tuple(
    re.compile(pattern)
    for pattern in (
        # Java, Kotlin, Scala
        r"at (?:[\w.]+/)?(?P<call>[\w.$<>-]+)\((?:[\w$-]+\.\w+(?::\d+)?|Native Method|Unknown Source)\)",
        # C#
        r"at (?P<call>[\w.`<>\[\],+]+)\([^)]*\)(?: in .+:line \d+)?\s*$",
        # JavaScript, TypeScript
        rf"at (?:async )?(?:new )?(?P<name>[^\s(]+)(?: \[as \w+\])? \({_FILE}:\d+(?::\d+)?\)",
        rf"at (?:async )?{_FILE}:\d+(?::\d+)?\s*$",
    )
)
_PYTHON = (re.compile(r"File \"(?P<file>[^\"]+)\", line \d+, in (?P<name>\S+)"),)
_OTHERS = (
    # What pytest writes
    re.compile(r"(?P<file>[\w./\\-]+\.py):\d+: (?:in (?P<name>\w+)|\w+)"),
    # Go: the line of the file comes after
    re.compile(r"(?P<call>[\w./-]+\.[\w.()*]+)\((?:0x[0-9a-f]+.*|\.\.\.|\{.*)?\)\s*$"),
)
_FRAMEWORK = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|org\.(?:junit|testng|springframework|hibernate|apache|gradle"
    r"|openqa|postgresql|mockito|assertj|hamcrest|eclipse)|com\.(?:mysql|zaxxer|google|fasterxml|codeborne)|oracle"
    r"|io\.(?:netty|restassured|appium|cucumber)|reactor|okhttp3|System|Microsoft|NUnit|Xunit|OpenQA|runtime|testing)\."
    r"|site-packages|dist-packages|node_modules|/lib/python\d|/unittest/|_pytest|/pytest|<frozen|<string>|importlib"
    r"|node:|internal/|/go/src/|webpack|/jest|/selenium/|/playwright/"
)
_TEST = re.compile(
    r"(?:^|[/\\])(?:tests?|__tests__|specs?|conftest\.py$)(?:[/\\]|$)|(?:^|[/\\])test_[^/\\]+$|[._](?:test|spec)s?\.\w+$"
    r"|_test\.\w+$|conftest\.py$|Tests?\.\w+$|(?:IT|Spec)\.\w+$|\.Tests\."
)
#: Names that compilers give: the anonymous, the generated, the inner.
_GENERATED = re.compile(r"\$\$?Lambda.*|\$\d+|<lambda>|<anonymous>|<module>|\.func\d+(?:\.\d+)*|`\d+|\$\$.*")
#: The innermost frames come first, or last where Python wrote them: of more lines the middle is left out.
_MOST_LINES = 200


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: its class and method, or its file and function."""

    label: str
    of_framework: bool = False
    of_test: bool = False


def frames_of(text: str) -> list[Frame]:
    """The frames of a stack trace, the innermost first.

    >>> [frame.label for frame in frames_of("  at a.Cart.add(Cart.java:88)\\n  at a.CartTest.adds(CartTest.java:1)")]
    ['a.Cart.add', 'a.CartTest.adds']
    """
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]
    found = [frame for line in lines if (frame := _frame_of(line))]
    is_python = any(line.lstrip().startswith('File "') for line in lines)
    return found[::-1] if is_python else found


def is_frame(line: str) -> bool:
    """Whether a line is a frame."""
    return _frame_of(line) is not None


def owner_of(label: str) -> str:
    """The class or file of a frame's label.

    >>> owner_of("a.b.Cart.add"), owner_of("cart.py:add")
    ('a.b.Cart', 'cart.py')
    """
    return label.partition(":")[0] if ":" in label else label.rpartition(".")[0]


@lru_cache(maxsize=20_000)
def _frame_of(line: str) -> Frame | None:
    """The frame that a line is, if any; traces of one program share most of their lines."""
    bare = line.lstrip()
    kinds = _AT if bare.startswith("at ") else _PYTHON if bare.startswith('File "') else _OTHERS
    found = next((found for kind in kinds if (found := kind.match(bare))), None)
    return _frame(found.groupdict()) if found else None


def _frame(parts: dict[str, str | None]) -> Frame:
    call, file, name = (parts.get(part) or "" for part in ("call", "file", "name"))
    where = file or call
    label = _GENERATED.sub("", call)
    if file:
        base = re.split(r"[/\\]", file)[-1]
        label = f"{base}:{_GENERATED.sub('', name).removeprefix('Object.')}".rstrip(":")
    owner = where if file else owner_of(call) + ".x"
    return Frame(label, bool(_FRAMEWORK.search(where)), bool(_TEST.search(owner)))
