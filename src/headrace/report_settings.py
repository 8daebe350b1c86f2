"""`[report]`: where workbooks lie that the service's callers name or send, and the rules that reports go by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """`[report]`: what `POST /api/v1/reports` reads and keeps."""

    #: folder of files that callers name or send, for workers of reports too; empty: `report-files` in `directory`
    files: Path | None = None
    #: file of rules that tell modules, for reports that name none
    rules: Path | None = None
