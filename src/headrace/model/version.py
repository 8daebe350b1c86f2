"""The version of this code: a module of its own, which every layer may look at."""

from __future__ import annotations

VERSION = "0.1.0"
