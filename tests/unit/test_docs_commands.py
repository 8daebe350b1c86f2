"""Every command line that a document shows exists: the command, its options, the target, the names they take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest

from headrace.bench.plan import chosen_contenders, chosen_workloads
from headrace.cli.root import cli
from headrace.model.errors import InvalidInputError
from headrace.testing.simulation import __main__ as simulation
from tools import check_docs

ROOT = check_docs.ROOT
FENCED = re.compile(r"^```(?:sh|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:headrace|make|python -m headrace) [^`]+)`")
PROMPT = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?=(?:headrace|make|python -m headrace)\b)")
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
#: Written from the commands themselves, and checked by `make check`.
GENERATED = ROOT / "docs" / "reference" / "cli.md"


def shown(text: str) -> Iterator[list[str]]:
    """Yield the words of each command line of a document."""
    lines = [line for block in FENCED.findall(text) for line in block.splitlines() if PROMPT.match(line)]
    for line in [*lines, *INLINE.findall(text)]:
        yield shlex.split(PROMPT.sub("", line), comments=True)


def mistakes(words: list[str]) -> list[str]:
    """Return what is wrong with a command line."""
    match words:
        case ["make", *arguments]:
            return wrong_targets(arguments)
        case ["python", "-m", "headrace.testing.simulation", *arguments]:
            return wrong_simulation(arguments)
        case ["python", "-m", "headrace", *arguments] | ["headrace", *arguments]:
            return wrong_command(cli, arguments)
    return []


def wrong_targets(arguments: list[str]) -> list[str]:
    """Return targets that the Makefile does not list."""
    return [word for word in arguments if "=" not in word and word not in TARGETS]


def wrong_simulation(arguments: list[str]) -> list[str]:
    """Return options that the simulation does not know."""
    known = simulation._parser().format_help()
    return [word for word in arguments if word.startswith("--") and f"{word} " not in f"{known} "]


def wrong_command(command: click.Command, arguments: list[str]) -> list[str]:
    """Return words that are no command where one must stand, options nobody knows, and names that bench refuses."""
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        found = command.get_command(click.Context(command), arguments[0])
        if found is None:
            return [arguments[0]] if re.fullmatch(r"[a-z-]+", arguments[0]) else []
        command, arguments = found, arguments[1:]
    options = {"--help", "-h"} | {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    given = [word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    return [
        *(word for word in given if word not in options),
        *(wrong_names(arguments) if command.name == "bench" else []),
    ]


def wrong_names(arguments: list[str]) -> list[str]:
    """Return workloads and peers that the benchmark does not have."""
    found = []
    for option, value in pairwise(arguments):
        try:
            if option == "--only":
                chosen_workloads(value, quick=False)
            if option == "--peers":
                chosen_contenders(value)
        except InvalidInputError:
            found.append(value)
    return found


DOCUMENTS = [path for path in check_docs.documents(ROOT) if path != GENERATED]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_of_a_document_exists(document: Path) -> None:
    """Whoever copies a command line finds the command, its options and its targets."""
    text = document.read_text(encoding="utf-8")
    assert {" ".join(words): found for words in shown(text) if (found := mistakes(words))} == {}


def test_invented_commands_options_targets_and_names_are_found() -> None:
    """The check itself can fail, in blocks and within lines."""
    text = """
```sh
A=1 headrace bench --quick --fast       # --none
headrace bench --only drain,sink --peers nobody
make nothing ARGS="x y"
python -m headrace.testing.simulation --sed 3
```
`headrace jump` and `headrace queue stats --all`, `make demo`
"""
    assert [mistakes(words) for words in shown(text)] == [
        ["--fast"], ["drain,sink", "nobody"], ["nothing"], ["--sed"], ["jump"], ["--all"], [],
    ]  # fmt: skip


def test_the_documents_show_the_commands_of_the_proof() -> None:
    """None of them is known to insiders only."""
    commands = {" ".join(words[:2]) for path in DOCUMENTS for words in shown(path.read_text(encoding="utf-8"))}
    assert commands >= {"headrace bench", "make bench", "make faults", "make growth", "make simulate", "make test-all"}
