"""Signs that a page cannot hold."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: object) -> str:
    """Return words without the controls that HTML cannot hold."""
    return _CONTROLS.sub("\ufffd", str(text))
