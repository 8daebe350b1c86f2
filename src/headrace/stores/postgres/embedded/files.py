"""Small files that must survive a power cut."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_durably(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file as a whole: readers and a power cut find the old text or the new one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask says
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
