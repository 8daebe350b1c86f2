"""`headrace report sample`: files to try reports with."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("sample")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text.")
def sample(folder: Path, *, as_json: bool) -> None:
    """Write sample files into DIR: a clean workbook, a messy one of 2,000 rows in Chinese, and a JUnit file.

    `headrace report build samples/messy.xlsx --out report/ --lang zh` makes a report of one.

    \b
    Example:
      headrace report sample samples/
    """
    from headrace.apps.report.delivering import check_folder
    from headrace.apps.report.samples.writing import write_samples

    check_folder(folder)
    files = [str(path) for path in write_samples(folder)]
    click.echo(json.dumps({"files": files}) if as_json else "\n".join(f"written: {file}" for file in files))
