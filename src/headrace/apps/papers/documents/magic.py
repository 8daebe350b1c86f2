"""Tell a file's type by its first bytes, where the name may lie."""

from __future__ import annotations

_MAGIC = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive (or a Word or Excel file)"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
)


def foreign_type(content: bytes) -> str | None:
    """What the bytes are instead of text, in words; None if nothing speaks against text.

    >>> foreign_type(b"%PDF-1.7 ..."), foreign_type(b"A text.")
    ('a PDF', None)
    """
    return next((kind for magic, kind in _MAGIC if content.startswith(magic)), None)


def is_pdf(content: bytes) -> bool:
    """Whether the PDF header lies within the first 1,024 bytes, where readers look for it."""
    return b"%PDF-" in content[:1024]
