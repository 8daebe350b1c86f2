"""NameStore: names that are used once within a scope."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.model.stats import Retention
from tests.conformance.books import Books

NOBODY = ClaimedNames()


def named(owner: UUID, *keys: str) -> list[NewName]:
    """Return names of one owner, shown in capitals."""
    return [NewName(key, key.upper(), owner) for key in keys]


async def claim(books: Books, owner: UUID, *keys: str, seen: int = 0) -> ClaimedNames:
    """Claim names of one owner."""
    return await books.names.claim_names("s", named(owner, *keys), seen=seen)


async def taken(books: Books, owner: UUID, *keys: str, seen: int = 0) -> frozenset[str]:
    """Claim names of one owner, who has seen all, and return the keys that are the owner's."""
    claimed = await claim(books, owner, *keys, seen=seen)
    assert claimed.newer == ()
    return frozenset(claimed.taken)


async def test_free_names_are_taken_in_order(books: Books) -> None:
    """Names are numbered from 1 in the order of taking, with key, shown name and owner."""
    owner = uuid4()
    assert await taken(books, owner, "b", "a") == {"a", "b"}
    assert await taken(books, owner, "c", seen=2) == {"c"}

    rows = [KnownName(key, key.upper(), owner, n) for n, key in enumerate("bac", 1)]
    assert await books.names.list_names("s") == rows
    assert await books.names.list_names("s", after=2) == rows[2:]
    assert await books.names.list_names("s", after=3) == []
    assert await books.names.list_names("other") == []


async def test_a_name_is_taken_once(books: Books) -> None:
    """A key that is somebody else's is not given; the others of the claim are."""
    first, second = uuid4(), uuid4()
    await taken(books, first, "a", "b")

    assert await taken(books, second, "b", "c", seen=2) == {"c"}
    assert [(row.key, row.owner, row.position) for row in await books.names.list_names("s")] == [
        ("a", first, 1), ("b", first, 2), ("c", second, 3),
    ]  # fmt: skip


async def test_names_that_were_not_seen_come_first(books: Books) -> None:
    """Where others took names since the caller looked, nothing is taken and those names are returned, in order."""
    first, second = uuid4(), uuid4()
    await taken(books, first, "a", "b", "c")
    answer = await claim(books, second, "x", "a", seen=1)

    assert answer.taken == {}
    assert answer.newer == tuple(KnownName(key, key.upper(), first, n) for n, key in [(2, "b"), (3, "c")])
    assert len(await books.names.list_names("s")) == 3
    assert await taken(books, second, "x", seen=3) == {"x"}


async def test_a_claim_can_be_repeated(books: Books) -> None:
    """After a lost answer an owner claims again, with what it had seen then, and has its names; no number is lost."""
    owner = uuid4()
    for _ in range(3):
        assert await taken(books, owner, "a", "b") == {"a", "b"}
    assert await taken(books, owner, "a", "c") == {"a", "c"}

    assert [row.position for row in await books.names.list_names("s")] == [1, 2, 3]
    assert (await books.names.list_names("s"))[0].name == "A"


async def test_a_repeated_claim_hears_of_others_that_came_since(books: Books) -> None:
    """What others took behind the owner's own names has to be seen before more is taken; what is taken stays."""
    first, second = uuid4(), uuid4()
    await taken(books, first, "a")
    await taken(books, second, "b", seen=1)

    answer = await claim(books, first, "a", "c")
    assert (answer.taken, [row.key for row in answer.newer]) == ({}, ["b"])
    assert await taken(books, first, "a", "b", "c", seen=2) == {"a", "c"}


async def test_one_claim_for_several_owners(books: Books) -> None:
    """Owners in one claim know of each other: none of their names is news, and of equal keys the first gets it."""
    first, second = uuid4(), uuid4()
    names = [*named(first, "a", "b"), *named(second, "b", "c"), NewName("a", "other spelling", first)]
    for _ in range(2):
        claimed = await books.names.claim_names("s", names, seen=0)
        assert claimed == ClaimedNames({"a": 1, "b": 2, "c": 3})

    rows = await books.names.list_names("s")
    assert [(row.key, row.name, row.owner) for row in rows] == [
        ("a", "A", first), ("b", "B", first), ("c", "C", second),
    ]  # fmt: skip


async def test_scopes_do_not_mix(books: Books) -> None:
    """Each scope has keys and numbers of its own."""
    owner, other = uuid4(), uuid4()
    for scope, who in (("s", owner), ("t", other)):
        assert (await books.names.claim_names(scope, named(who, "a"), seen=0)).taken == {"a": 1}
        assert [row.position for row in await books.names.list_names(scope)] == [1]


async def test_a_claim_of_nothing_tells_what_is_new(books: Books) -> None:
    """A claim without names takes nothing and still says what the caller has not seen."""
    owner = uuid4()
    assert await books.names.claim_names("s", [], seen=0) == NOBODY
    await taken(books, owner, "a")
    assert [row.key for row in (await books.names.claim_names("s", [], seen=0)).newer] == ["a"]
    assert await books.names.claim_names("s", [], seen=1) == NOBODY


async def test_names_are_given_back(books: Books) -> None:
    """What an owner gives back is free for others, under a new number; names of others stay."""
    first, second = uuid4(), uuid4()
    await taken(books, first, "a", "b")
    await taken(books, second, "c", seen=2)
    assert [await books.names.release_names("s", first) for _ in range(2)] == [2, 0]
    assert await books.names.release_names("other", second) == 0

    assert await taken(books, second, "a", seen=3) == {"a"}
    assert [(row.key, row.position) for row in await books.names.list_names("s")] == [("c", 3), ("a", 4)]
    await books.names.release_names("s", second)
    assert await taken(books, first, "z") == {"z"}
    assert [row.position for row in await books.names.list_names("s")] == [5]


async def test_any_text_is_a_name(books: Books) -> None:
    """Names come from models: NULs, lone surrogates and quotes are kept as they are, and tell names apart."""
    owner = uuid4()
    keys = ["a\x00b", "\ud800", "a\\u0000b", "ab", "é😀", '"', "x" * 10_000]
    names = [NewName(key, key, owner) for key in keys]
    assert (await books.names.claim_names("s", names, seen=0)).taken.keys() == set(keys)
    assert [(row.key, row.name) for row in await books.names.list_names("s")] == [(key, key) for key in keys]


async def test_racing_claimers_never_get_one_key_twice(books: Books) -> None:
    """Twenty batches take from the same forty keys at once, comparing and claiming until they have seen all."""
    keys = [f"key {n}" for n in range(40)]
    owners = [uuid4() for _ in range(20)]
    blind = 0

    async def batch(number: int) -> set[str]:
        nonlocal blind
        seen, known = 0, set[str]()
        wanted = [keys[(number * 7 + n) % 40] for n in range(10)]
        while True:
            fresh = [key for key in wanted if key not in known]
            claimed = await claim(books, owners[number], *fresh, seen=seen)
            if not claimed.newer:
                assert claimed.taken.keys() == set(fresh), "a key was refused though all names were seen"
                return set(claimed.taken)
            assert claimed.taken == {}
            seen = max(row.position for row in claimed.newer)
            known |= {row.key for row in claimed.newer}
            blind += 1

    won: Sequence[set[str]] = await asyncio.gather(*(batch(number) for number in range(20)))
    rows = await books.names.list_names("s")
    assert sum(len(keys) for keys in won) == len(rows) == 40
    assert [row.position for row in rows] == list(range(1, 41))
    assert {row.key: row.owner for row in rows} == {key: owners[n] for n, keys in enumerate(won) for key in keys}
    assert blind >= 19


async def test_names_are_never_pruned(books: Books) -> None:
    """However old, a name stays taken."""
    await taken(books, uuid4(), "a")
    books.clock.advance(timedelta(days=4_000))
    await books.stores.jobs.prune_jobs(Retention(), limit=1_000)
    assert len(await books.names.list_names("s")) == 1
