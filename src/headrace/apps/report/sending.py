"""Files that callers of the service send."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from headrace import App, ConflictError
from headrace.apps.report.ingest.formats import told_kind
from headrace.apps.report.sources import FILE, files_folder, path_of


def store_file(app: App, name: str, data: bytes) -> tuple[dict[str, Any], bool]:
    """Store a file under a name of its own, once it is known to be harmless; return what it is, and whether it is new.

    Raises ConfigError for a file that is refused, InvalidInputError for a name, ConflictError where another has it.
    """
    path = path_of(app, FILE + name)
    folder = files_folder(app)
    folder.mkdir(parents=True, exist_ok=True)
    stored = {"file_ref": FILE + name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    with NamedTemporaryFile(dir=folder, prefix=".", suffix=path.suffix, delete=False) as draft:
        draft.write(data)
        draft.flush()
        os.fsync(draft.fileno())
    try:
        told_kind(Path(draft.name))
        os.link(draft.name, path)
    except FileExistsError:
        if path.read_bytes() != data:
            raise ConflictError(f"there is another file {name!r}: send this one under another name") from None
        return stored, False
    finally:
        Path(draft.name).unlink(missing_ok=True)
    return stored, True
