"""Every piece of headrace.toml that a document shows is one that Headrace reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.settings import load_settings
from tools import check_docs

BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    pytest.param(block, id=f"{page.relative_to(check_docs.ROOT)}-{number}")
    for page in check_docs.documents(check_docs.ROOT)
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
    if not block.startswith("[project")  # of a pyproject.toml
]
#: What a page leaves out of the file, and what no test machine has.
AROUND = {"HEADRACE_BLOB_STORAGE_SECRET_KEY": "of a test"}
HERE = {'"/etc/ssl/kafka.pem"': repr(__file__), "whsec_…": "whsec_" + "QUJD" * 8}


@pytest.mark.parametrize("block", SHOWN)
def test_a_piece_of_headrace_toml_is_read(block: str, tmp_path: Path) -> None:
    """Each key exists and has a value of its type; whoever copies it starts."""
    file = tmp_path / "headrace.toml"
    for there, here in HERE.items():
        block = block.replace(there, here)
    file.write_text(block, encoding="utf-8")
    blobs = AROUND if "access_key" in block or "minio" in block else {}
    load_settings(environ={"HEADRACE_CONFIG": str(file), **blobs})
