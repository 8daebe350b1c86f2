"""SessionStore.lead: each role has one leader, and the terms of one say nothing of another's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.session import LeaderTerm, Role
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario
from tests.conformance.test_leader_terms import NOTHING_KEPT

LEASE = 10 * SECOND


async def lead(
    on: Scenario, session: UUID, role: Role = Role.RELAY, lease: timedelta = LEASE
) -> LeaderTerm | None:  # fmt: skip
    """Become or stay the leader in a role."""
    return await on.stores.sessions.lead(session, lease=lease, role=role)


async def test_workers_lead_as_engines(on: Scenario) -> None:
    """Who names no role means that one."""
    term = await on.term()

    assert term.role is Role.ENGINE
    assert await lead(on, uuid4(), Role.ENGINE) is None
    assert await lead(on, term.session, Role.ENGINE) == term


async def test_each_role_has_a_leader_of_its_own(on: Scenario) -> None:
    """One session may lead in one, in another or in both, and nobody else does as long as it stays."""
    engine, relay, third = uuid4(), uuid4(), uuid4()
    first = await lead(on, engine, Role.ENGINE)
    second = await lead(on, relay, Role.RELAY)

    assert (first and first.session, second and second.session) == (engine, relay)
    assert (first and first.role, second and second.role) == (Role.ENGINE, Role.RELAY)
    assert [await lead(on, third, role) for role in Role] == [None, None]
    assert await lead(on, engine, Role.RELAY) is None
    assert (await lead(on, engine, Role.ENGINE), await lead(on, relay, Role.RELAY)) == (first, second)


async def test_one_session_may_lead_in_every_role(on: Scenario) -> None:
    """Such as that of a worker with everything enabled."""
    session = uuid4()
    terms = [await lead(on, session, role) for role in Role]

    assert [term and (term.session, term.role) for term in terms] == [(session, role) for role in Role]


async def test_terms_of_a_role_count_for_themselves(on: Scenario) -> None:
    """A change of leaders in one moves no term of another."""
    engine = await lead(on, uuid4(), Role.ENGINE, DAY)
    numbers = []
    for _ in range(3):
        relay = await lead(on, uuid4())
        assert relay is not None
        numbers.append(relay.term)
        on.clock.advance(LEASE)

    assert engine is not None
    assert numbers == sorted(set(numbers))
    assert await lead(on, engine.session, Role.ENGINE, DAY) == engine


async def test_resigning_gives_one_role_up(on: Scenario) -> None:
    """The other one is kept, and a term of another role resigns nothing."""
    session = uuid4()
    engine, relay = await lead(on, session, Role.ENGINE), await lead(on, session, Role.RELAY)
    assert engine is not None
    assert relay is not None
    await on.stores.sessions.resign(replace(relay, term=relay.term + 1))
    assert await lead(on, uuid4(), Role.RELAY) is None

    await on.stores.sessions.resign(relay)
    assert await lead(on, uuid4(), Role.ENGINE) is None
    follower = await lead(on, uuid4(), Role.RELAY)
    assert follower is not None
    assert follower.term > relay.term


async def test_a_lease_ends_in_its_role(on: Scenario) -> None:
    """The one that is not renewed, and not the other of the same session."""
    session = uuid4()
    await lead(on, session, Role.ENGINE, 3 * LEASE)
    relay = await lead(on, session, Role.RELAY)
    on.clock.advance(LEASE)

    follower = await lead(on, uuid4(), Role.RELAY)
    assert relay is not None
    assert follower is not None
    assert follower.term > relay.term
    assert await lead(on, uuid4(), Role.ENGINE) is None


async def test_of_many_at_once_one_leads_in_each_role(on: Scenario) -> None:
    """Whoever asks first; all others are told that somebody leads."""
    asked = [(uuid4(), role) for _ in range(6) for role in Role]
    answers = await asyncio.gather(*(lead(on, session, role) for session, role in asked))

    assert sorted(term.role for term in answers if term is not None) == sorted(Role)


@pytest.mark.parametrize("role", list(Role))
async def test_a_term_of_the_role_is_the_proof(on: Scenario, role: Role) -> None:
    """What a leader writes names its role: under the same session and number in another role nothing is done."""
    await on.end(*await on.start())
    on.clock.advance(SECOND)
    term = await lead(on, uuid4(), role)
    assert term is not None
    for other in set(Role) - {role}:
        assert (await on.stores.jobs.prune_jobs(NOTHING_KEPT, limit=ALL, term=replace(term, role=other))).total == 0

    assert (await on.stores.jobs.prune_jobs(NOTHING_KEPT, limit=ALL, term=term)).removed["jobs"] == 1
