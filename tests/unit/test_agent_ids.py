"""Canonical ids of agents and their aliases."""

from __future__ import annotations

import pytest

from headrace.model.agent_ids import AgentIds, canonical_id
from headrace.model.errors import ConfigError, InvalidInputError, NotFoundError


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("character_expert", "characterexpert"), ("world_builder", "worldbuilder"), ("World-Builder", "worldbuilder")],
)
def test_names_have_one_canonical_form(name: str, canonical: str) -> None:
    """Spelling variants of one agent are one id."""
    assert canonical_id(name) == canonical


@pytest.mark.parametrize("name", ["", "_", "a b", "ä", "x" * 65, None, 3])
def test_other_names_are_refused(name: object) -> None:
    """An id is letters and digits, with a few signs between."""
    with pytest.raises(InvalidInputError, match="agent id"):
        canonical_id(name)  # type: ignore[arg-type]


def test_aliases_lead_to_the_canonical_id() -> None:
    """Every spelling and every alias resolves."""
    ids = AgentIds()
    assert ids.add("character_expert", aliases=["names", "Old.Namer"]) == "characterexpert"
    for name in ("characterexpert", "character_expert", "Character-Expert", "names", "Old.Namer", "oldnamer"):
        assert ids.resolve(name) == "characterexpert"
    assert list(ids) == ["characterexpert"]
    assert ids.aliases("characterexpert") == ("character_expert", "names", "Old.Namer")


@pytest.mark.parametrize(
    ("name", "aliases"), [("characterexpert", []), ("other", ["character_expert"]), ("x", ["NAMES"])]
)
def test_a_name_in_use_is_refused(name: str, aliases: list[str]) -> None:
    """No two agents answer to one name, in any spelling."""
    ids = AgentIds()
    ids.add("character_expert", aliases=["names"])
    with pytest.raises(ConfigError, match="in use"):
        ids.add(name, aliases=aliases)


def test_an_unknown_agent_is_not_found_and_the_nearest_is_named() -> None:
    """The error says what there is."""
    ids = AgentIds()
    ids.add("world_builder")
    with pytest.raises(NotFoundError, match=r"did you mean 'world_?builder'"):
        ids.resolve("world_bilder")
    with pytest.raises(NotFoundError, match="there are: worldbuilder"):
        ids.resolve("zzz")
