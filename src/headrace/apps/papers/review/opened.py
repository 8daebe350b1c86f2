"""The results of a run as they lie in their folder, read again: its template, its values, its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headrace.apps.papers.output.lines import ValueLine, lines_of
from headrace.apps.papers.output.model import Row
from headrace.apps.papers.result import DocumentResult
from headrace.apps.papers.review.errors import ReviewError
from headrace.apps.papers.template import Template

RESULTS, RECORD = "results.jsonl", "run.json"
_AGAIN = "run `headrace papers extract` again; nothing is paid twice"


@dataclass(frozen=True, slots=True)
class Opened:
    """What `headrace papers extract` wrote into a folder."""

    record: dict[str, Any]
    template: Template
    lines: tuple[ValueLine, ...]

    @property
    def run_id(self) -> str:
        """The run that wrote it."""
        run_id: str = self.record["run_id"]
        return run_id


def open_results(out: Path) -> Opened:
    """Read `run.json` and `results.jsonl` of a folder. Raises ReviewError, which says what to do."""
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
        template = Template.model_validate(record["template"]["content"])
        rows = list(_rows((out / RESULTS).read_text(encoding="utf-8")))
        lines = tuple(lines_of(template, rows))
        if template.digest != record["template"]["digest"] or not isinstance(record["run_id"], str):
            raise ValueError(f"{RECORD} was changed")
        return Opened(record, template, lines)
    except OSError as error:
        raise ReviewError(
            f"--out must be a folder with the results of `headrace papers extract`: {error.filename} cannot be read "
            f"({error.strerror})"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fault = "breaks a rule" if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        raise ReviewError(f"{out} holds results that this version cannot read ({fault:.100}); {_AGAIN}") from None


def _rows(text: str) -> Iterator[Row]:
    for line in text.split("\n"):
        if not line:
            continue
        data = json.loads(line)
        row = Row(data["document_id"], data["name"], tuple(data.pop("duplicates")))
        if data.pop("state") == "completed":
            yield row.extracted(DocumentResult.from_json(data))
