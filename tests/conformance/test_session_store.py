"""SessionStore: leases, and the one leader."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

from headrace.model.session import LeaderTerm, NewSession, ProcessId, Renewal
from tests.conformance.scenario import DAY, LEASE, SECOND, Scenario

TERM = timedelta(seconds=10)


async def renew(on: Scenario, session: UUID, lease: timedelta = LEASE) -> Renewal:
    """Send a heartbeat."""
    return await on.stores.sessions.renew_session(session, lease=lease, stats={})


async def lead(on: Scenario, session: UUID) -> LeaderTerm | None:
    """Try to lead."""
    return await on.stores.sessions.lead(session, lease=TERM)


# Leases


async def test_a_registered_session_is_listed_with_its_lease(on: Scenario) -> None:
    """A session is registered with its process and queues; its lease starts at the store's time."""
    process = ProcessId("boot-1/ns-4", 4711, 987_654_321_012)
    new = NewSession(process, "box.example", {"default": 10, "llm": 2}, LEASE)
    await on.stores.sessions.register_session(new)

    [view] = await on.stores.inspect.list_sessions()
    assert (view.id, view.process, view.hostname, view.queues) == (new.id, process, "box.example", new.queues)
    assert (view.started_at, view.expires_at) == (on.clock.now(), on.clock.now() + LEASE)
    assert (view.alive, view.running, view.stats) == (True, 0, {})


async def test_a_renewal_extends_the_lease(on: Scenario) -> None:
    """A renewed lease runs from the time of the renewal; the session stays alive as long as it goes on."""
    session = await on.worker()
    for _ in range(5):
        on.clock.advance(LEASE - SECOND)
        assert await renew(on, session) == Renewal(alive=True)

    [view] = await on.stores.inspect.list_sessions()
    assert view.expires_at == on.clock.now() + LEASE


async def test_a_lease_that_ended_is_never_renewed(on: Scenario) -> None:
    """At its end a lease is over for good, however often the worker asks."""
    session = await on.worker()
    on.clock.advance(LEASE)

    assert await renew(on, session) == Renewal(alive=False)
    assert await renew(on, session, DAY) == Renewal(alive=False)
    [view] = await on.stores.inspect.list_sessions()
    assert not view.alive


async def test_an_unknown_session_is_not_alive(on: Scenario) -> None:
    """A renewal of a session that was never registered is refused, and registers nothing."""
    assert await renew(on, uuid4()) == Renewal(alive=False)
    assert await on.stores.inspect.list_sessions() == []


async def test_a_dead_session_is_not_revived_by_registering_it(on: Scenario) -> None:
    """A session id is used once: registering it again does not bring an ended lease back."""
    new = NewSession(ProcessId("host", 1, 1), "h", {}, LEASE)
    await on.stores.sessions.register_session(new)
    on.clock.advance(LEASE)
    await on.stores.sessions.register_session(new)

    assert await renew(on, new.id) == Renewal(alive=False)


async def test_a_renewal_reports_statistics(on: Scenario) -> None:
    """What a worker reports with its heartbeat can be read until the next one replaces it."""
    session = await on.worker()
    for stats in ({"rss": 1}, {"rss": 2, "unsent": [1, None]}):
        await on.stores.sessions.renew_session(session, lease=LEASE, stats=stats)
        [view] = await on.stores.inspect.list_sessions()
        assert view.stats == stats


async def test_a_renewal_names_the_jobs_to_cancel(on: Scenario) -> None:
    """A heartbeat hears of the cancels of its own running jobs, again and again until they ended."""
    session, job = await on.start()
    other, _ = await on.start()
    await on.enqueue()
    await on.stores.control.cancel_job(job.id)

    assert await renew(on, session) == await renew(on, session) == Renewal(alive=True, cancel_jobs=(job.id,))
    assert (await renew(on, other)).cancel_jobs == ()
    await on.end(session, job)
    assert (await renew(on, session)).cancel_jobs == ()


async def test_a_dead_session_hears_of_no_cancels(on: Scenario) -> None:
    """A session that lost its lease is told that alone."""
    session, job = await on.start()
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(LEASE)

    assert await renew(on, session) == Renewal(alive=False)


async def test_a_closed_session_ends_at_once(on: Scenario) -> None:
    """Closing ends the lease now and for good; closing again, or a stranger, is allowed."""
    session = await on.worker()
    await on.stores.sessions.close_session(session)
    await on.stores.sessions.close_session(session)
    await on.stores.sessions.close_session(uuid4())

    assert await renew(on, session) == Renewal(alive=False)
    [view] = await on.stores.inspect.list_sessions()
    assert not view.alive


async def test_sessions_of_a_host_can_be_asked_for(on: Scenario) -> None:
    """A neighbour sees the live sessions of its host with their processes: none of other hosts, none that ended."""
    here = await on.worker(host="here", pid=11)
    also = await on.worker(host="here", pid=12)
    await on.worker(host="there")
    gone = await on.worker(host="here", pid=13)
    await on.stores.sessions.close_session(gone)
    await on.worker(host="here", lease=SECOND)
    on.clock.advance(SECOND)

    found = await on.stores.sessions.sessions_on("here")
    assert dict(found) == {here: ProcessId("here", 11, 1), also: ProcessId("here", 12, 1)}
    assert await on.stores.sessions.sessions_on("nowhere") == []


async def test_sessions_known_to_be_gone_are_expired(on: Scenario) -> None:
    """Expiring ends exactly the named sessions; unknown and ended ones are passed over."""
    gone, kept, ended = await on.worker(), await on.worker(), await on.worker(lease=SECOND)
    on.clock.advance(SECOND)
    await on.stores.sessions.expire_sessions([gone, ended, uuid4()])
    await on.stores.sessions.expire_sessions([])

    assert [(await renew(on, session)).alive for session in (gone, kept, ended)] == [False, True, False]
    views = {view.id: view for view in await on.stores.inspect.list_sessions()}
    assert (views[gone].expires_at, views[ended].expires_at) == (on.clock.now(), on.clock.now())


async def test_the_end_of_a_lease_is_not_moved_by_ending_it_again(on: Scenario) -> None:
    """A session that ended a while ago still shows when that was, after it was closed or expired again."""
    session = await on.worker()
    ended_at = on.clock.now() + LEASE
    on.clock.advance(LEASE + SECOND)
    await on.stores.sessions.close_session(session)
    await on.stores.sessions.expire_sessions([session])

    [view] = await on.stores.inspect.list_sessions()
    assert view.expires_at == ended_at


# Leadership


async def test_the_first_to_ask_leads(on: Scenario) -> None:
    """One session leads; others are told None while its lease runs."""
    first, second = uuid4(), uuid4()
    term = await lead(on, first)

    assert term is not None
    assert term.session == first
    on.clock.advance(TERM - SECOND)
    assert await lead(on, second) is None


async def test_a_leader_stays_leader_in_its_term(on: Scenario) -> None:
    """Asking again within the lease extends it in the same term."""
    first, second = uuid4(), uuid4()
    term = await lead(on, first)
    for _ in range(5):
        on.clock.advance(TERM - SECOND)
        assert await lead(on, first) == term
        assert await lead(on, second) is None


async def test_a_lapsed_leader_is_replaced_in_a_new_term(on: Scenario) -> None:
    """At the end of the lease another session leads, in a higher term, and the first one no longer does."""
    first, second = uuid4(), uuid4()
    old = await lead(on, first)
    on.clock.advance(TERM)
    new = await lead(on, second)

    assert old is not None
    assert new is not None
    assert (new.session, new.term > old.term) == (second, True)
    assert await lead(on, first) is None


async def test_a_resigned_leader_is_replaced_at_once(on: Scenario) -> None:
    """After a resignation the next session leads without waiting, in a higher term."""
    old = await lead(on, uuid4())
    assert old is not None
    await on.stores.sessions.resign(old)
    new = await lead(on, uuid4())

    assert new is not None
    assert new.term > old.term


async def test_terms_never_come_again(on: Scenario) -> None:
    """Each new leader has a higher term than every one before, through lapses and resignations."""
    terms = []
    for number in range(6):
        term = await lead(on, uuid4())
        assert term is not None
        terms.append(term.term)
        if number % 2:
            await on.stores.sessions.resign(term)
        else:
            on.clock.advance(TERM)

    assert terms == sorted(set(terms))


async def test_a_resigned_leader_may_lead_again_in_a_new_term(on: Scenario) -> None:
    """A session that gave leadership up begins a new term when it leads again."""
    session = uuid4()
    old = await lead(on, session)
    assert old is not None
    await on.stores.sessions.resign(old)
    new = await lead(on, session)

    assert new is not None
    assert new.term > old.term


async def test_resigning_from_an_old_term_changes_nothing(on: Scenario) -> None:
    """A former leader that resigns late does not unseat the one that leads now."""
    old = await lead(on, uuid4())
    assert old is not None
    on.clock.advance(TERM)
    session = uuid4()
    new = await lead(on, session)
    await on.stores.sessions.resign(old)
    await on.stores.sessions.resign(LeaderTerm(uuid4(), new.term if new else 0))

    assert await lead(on, uuid4()) is None
    assert await lead(on, session) == new


async def test_of_many_candidates_one_leads(on: Scenario) -> None:
    """Of candidates that ask at the same moment exactly one leads, at the start and after a lapse."""
    candidates = [uuid4() for _ in range(10)]
    highest = 0
    for _ in range(3):
        answers = await asyncio.gather(*(lead(on, candidate) for candidate in candidates))
        [term] = [answer for answer in answers if answer is not None]
        assert term.term > highest
        highest = term.term
        on.clock.advance(TERM)
