"""What a worker knows of its cluster before it meets it: where it is, and what goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RaySite:
    """A cluster."""

    #: "auto" or HOST:PORT.
    address: str
    namespace: str
    #: What Ray brings to the nodes: `working_dir`, `py_modules`, `pip`. Ray logs it.
    runtime_env: Mapping[str, Any]
    #: The module whose `work` runs a call there, and what each call brings along for it, which may be secret.
    entry: str
    luggage: str = field(repr=False)
