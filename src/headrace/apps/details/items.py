"""One detail as a model writes it: a name, what it is, and attributes of plain values."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from headrace.llm.dedupe import normalise

MOST_NAME, MOST_DESCRIPTION, MOST_ATTRIBUTES = 200, 4_000, 50
#: Bytes of JSON of a whole item: an entry of a feed holds it with ease, and an event 50 of them.
MOST_BYTES = 16 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

AttributeName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
AttributeText = Annotated[str, StringConstraints(max_length=500)]


class DetailItem(BaseModel):
    """A detail. Its name is never empty: what has none is not one."""

    model_config = ConfigDict(str_strip_whitespace=True, allow_inf_nan=False)

    name: str = Field(min_length=1, max_length=MOST_NAME, description="the name, unlike all others")
    description: str = Field(default="", max_length=MOST_DESCRIPTION, description="one or two sentences")
    attributes: dict[AttributeName, AttributeText | bool | int | float | None] = Field(
        default_factory=dict, max_length=MOST_ATTRIBUTES, description="two or three facts: a word, and a plain value"
    )

    @field_validator("name", "description", mode="before")
    @classmethod
    def _without_controls(cls, value: Any) -> Any:
        """A model's line breaks and the like are spaces."""
        return _CONTROL.sub(" ", value) if isinstance(value, str) else value

    @field_validator("attributes", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {cls._without_controls(name): cls._without_controls(each) for name, each in value.items()}

    @field_validator("name")
    @classmethod
    def _is_visible(cls, value: str) -> str:
        if not normalise(value):
            raise ValueError("a name needs a character that can be seen")
        return value

    @model_validator(mode="after")
    def _is_short(self) -> Self:
        size = len(json.dumps(self.model_dump(mode="json"), ensure_ascii=False).encode(errors="surrogatepass"))
        if size > MOST_BYTES:
            raise ValueError(f"an item is at most {MOST_BYTES:,} bytes of JSON, and this one is {size:,}")
        return self

    @property
    def key(self) -> str:
        """The name, normalised: what two details must not share."""
        return normalise(self.name)

    def to_json(self) -> dict[str, Any]:
        """Name, description and attributes as plain JSON.

        >>> DetailItem(name=" Frostkeep ", attributes={"age": 300, "ruined": True}).to_json()
        {'name': 'Frostkeep', 'description': '', 'attributes': {'age': 300, 'ruined': True}}
        """
        return self.model_dump(mode="json")
