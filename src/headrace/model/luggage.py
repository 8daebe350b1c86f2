"""What a process elsewhere needs before it can open the app of a worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Luggage:
    """What goes along with a call: where the app is found, and how it is set."""

    #: "module:name", or "/path.py:name" of a script.
    app: str
    #: Modules in which tasks, workflows and agents of the app are.
    modules: tuple[str, ...]
    #: Environment variables; some of them are secret.
    environ: Mapping[str, str] = field(repr=False)
    #: The folder to work in, where there is one of that name.
    folder: str = ""

    @property
    def text(self) -> str:
        """It as one text.

        >>> Luggage.parse(Luggage("shop:app", ("shop.jobs",), {"A": "1"}).text).modules
        ('shop.jobs',)
        """
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Luggage:
        """Return what a text says."""
        said: dict[str, Any] = json.loads(text)
        return cls(said["app"], tuple(said["modules"]), said["environ"], said["folder"])
