"""The base of what stages hand on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A value that never changes, and that refuses members it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
