"""The libraries of the extra `headrace[report]`, loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headrace import ConfigError


def safe_xml() -> Any:
    """Return the parsers of XML that know no entities. Raises ConfigError where they are not installed."""
    library_folder("defusedxml", "defusedxml")
    return import_module("defusedxml.ElementTree")


def library_folder(module: str, package: str) -> str:
    """Return the folder that a library is in. Raises ConfigError where it is not installed."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ConfigError(f"{package} is not installed, which reads such files: pip install 'headrace[report]'")
    return str(Path(found.origin).parent.parent)
