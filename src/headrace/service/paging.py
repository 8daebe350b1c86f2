"""Pages of lists: how many, and where the next one begins."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

#: Entries of a page at most, and unless asked for.
MOST, USUAL = 200, 50

Limit = Annotated[int, Field(ge=1, le=MOST, description="how many")]
Cursor = Annotated[str | None, Field(min_length=1, max_length=200, description="`next_cursor` of the page before")]


class Page(BaseModel):
    """What the query of a list may have; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL
    cursor: Cursor = None
