"""From the artifacts of a report to files in a folder."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.apps.report.errors import OutputError
from headrace.apps.report.job import Job
from headrace.apps.report.opening import app
from headrace.apps.sheets.files import written_whole

#: Files of a report, by the names of their artifacts, with their types for the service.
FILES = {"html_ref": "report.html", "xlsx_ref": "report.xlsx", "json_ref": "report.json"}
TYPES = {
    "report.html": "text/html; charset=utf-8",
    "report.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "report.json": "application/json",
}
#: What a page says of itself, at its beginning; `html` and `plain` write it.
_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([ !#-;=?-~]{1,2000})">')
_SAID_WITHIN = 2_000


def policy_of(page: bytes) -> str:
    """Return the content security policy of a page of a report: that which it has itself, or one that allows nothing.

    >>> policy_of(b'<meta http-equiv="Content-Security-Policy" content="script-src &#39;sha256-x&#39;">')
    "script-src 'sha256-x'"
    >>> policy_of(b"<h1>")
    "default-src 'none'"
    """
    found = _POLICY.search(page[:_SAID_WITHIN])
    return "default-src 'none'" if found is None else html.unescape(found[1].decode("ascii"))


def check_folder(out: Path) -> None:
    """Make the folder of a report before anything is asked. Raises OutputError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise OutputError(
            f"--out must be a folder that can be written, got {out} ({error.strerror}); name another"
        ) from None


async def file_of(job: Job, artifacts: Mapping[str, Any], name: str) -> bytes | None:
    """Return a file of a report by its name, or None where the report lacks it."""
    mark = next((artifacts.get(ref) for ref, file in FILES.items() if file == name), None)
    return None if mark is None else await app.files.get(mark, run=job.run.id)


async def deliver(job: Job, out: Path) -> list[Path]:
    """Write the files of a report that has ended into a folder, each whole or not at all; return their paths."""
    artifacts = (await job.run.result())["artifacts"]
    written = []
    for name in FILES.values():
        data = await file_of(job, artifacts, name)
        try:
            _write(out / name, data)
        except OSError as error:
            raise OutputError(f"{out / name} cannot be written ({error.strerror}); name another folder") from None
        if data is not None:
            written.append(out / name)
    return written


def _write(path: Path, data: bytes | None) -> None:
    if data is None:
        # One of an earlier report would be taken for this one's.
        path.unlink(missing_ok=True)
        return
    # Another command may write the same file at the same moment.
    with written_whole(path) as draft:
        draft.write_bytes(data)
