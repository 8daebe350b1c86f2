"""Writes all sample files."""

from __future__ import annotations

from pathlib import Path

from headrace.apps.report.samples.clean import write_clean
from headrace.apps.report.samples.junit import write_junit
from headrace.apps.report.samples.messy import write_messy

#: By name of the file.
WRITERS = {"clean.xlsx": write_clean, "messy.xlsx": write_messy, "junit.xml": write_junit}


def write_samples(folder: Path) -> list[Path]:
    """Write every sample below a folder, which is made where it is not there; return their paths.

    The files are the same each time. Raises ConfigError where `headrace[report]` is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in WRITERS.items():
        write(folder / name)
    return [folder / name for name in WRITERS]
