"""What the parts of details call each other: queues, tasks, types of events, feeds, and the ids of parts of a batch."""

from __future__ import annotations

from uuid import UUID, uuid5

#: Where requests wait until they begin; paused while the mode changes.
INTAKE_QUEUE = "details.intake"
#: Where batches are coordinated.
FLOWS_QUEUE = "details.flows"
#: Where the parts of batches wait for their turn, by priority.
SUBTASKS_QUEUE = "details.subtasks"

INTAKE_TASK = "details_intake"
FLOW_TASK = "genesis_detail_batch_flow"
SUBTASK_TASK = "details_subtask"

REQUESTED = "Genesis.Session.DetailBatchGenerationRequested"
CREATED = "Genesis.Session.DetailBatchCreated"
COMPLETED = "Genesis.Session.DetailBatchCompleted"
AGGREGATE = "GenesisSession"

#: Entries of the feed of a batch, in this order; there are as many items as were delivered.
ACCEPTED, ITEM, FIRST_RESPONSE, ENDED = "accepted", "item", "first_response", "completed"
#: The feed of ended batches, and the one of changes of the mode.
DONE_FEED, MODE_FEED = "details.done", "details.mode"

_OWNERS = UUID("7f3c0e6e-8a38-5d0e-9d6d-3a1f5c3b9e44")


def feed_name(batch_id: str) -> str:
    """Return the name of the feed of a batch."""
    return f"details:{batch_id}"


def failures_name(batch_id: str) -> str:
    """Return the name of the feed of what the tries of a batch cost that came to nothing; most batches have none."""
    return f"details.failures:{batch_id}"


def scope_name(scope: str, type_: str) -> str:
    """Return the name of the book of names of a scope.

    >>> scope_name("saga-7", "skill")
    'details/saga-7/skill'
    """
    return f"details/{scope}/{type_}"


def departure_id(batch_id: str, number: int) -> str:
    """Return the correlation id of the parts of a batch that go out together; of the first it is the batch's.

    >>> departure_id("b", 1), departure_id("b", 2)
    ('b', 'b.2')
    """
    return batch_id if number == 1 else f"{batch_id}.{number}"


def batch_of(departure: str) -> str:
    """Return the id of the batch of a departure.

    >>> batch_of("b"), batch_of("b.2")
    ('b', 'b')
    """
    return departure.partition(".")[0]


def subtask_id(batch_id: str, index: int) -> str:
    """Return the id of a part of a batch, counted from 0.

    >>> subtask_id("b", 3)
    'b:3'
    """
    return f"{batch_id}:{index}"


def item_key(subtask: str, place: int) -> str:
    """Return the key under which an item stands in its feed: a part has each place once, whoever fills it.

    >>> item_key("b:3", 0)
    'b:3:0'
    """
    return f"{subtask}:{place}"


def owner_of(place: str) -> UUID:
    """Return whose a name is that is claimed for a place: it can be delivered there and nowhere else.

    >>> owner_of("b:3:0") == owner_of("b:3:0"), owner_of("b:3:0") == owner_of("b:3:1")
    (True, False)
    """
    return uuid5(_OWNERS, place)
