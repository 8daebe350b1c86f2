"""`[papers]`: where templates and documents lie that the service's callers name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """`[papers]`: what `POST /api/v1/papers` may name."""

    #: folder of the template files; None: the service takes no papers
    templates: Path | None = None
    #: folder of the documents; workers of papers need it too
    documents: Path | None = None
