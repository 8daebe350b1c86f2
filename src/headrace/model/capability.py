"""What a store can do beyond the contract that all of them keep: differences are declared, never guessed."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """One thing that some stores can do and others cannot; `meaning` says it in words."""

    SHARED = "shared"
    SURVIVES_PROCESSES = "survives_processes"
    SURVIVES_SERVER = "survives_server"
    SURVIVES_MACHINE = "survives_machine"
    SURVIVES_FAILOVER = "survives_failover"
    TRANSACTIONAL_ENQUEUE = "transactional_enqueue"
    HISTORY_ON_DISK = "history_on_disk"
    HINTS = "hints"

    @property
    def meaning(self) -> str:
        """What the capability is, for people.

        >>> Capability.SHARED.meaning
        'processes and machines share its jobs'
        """
        return _MEANINGS[self]


_MEANINGS = {
    Capability.SHARED: "processes and machines share its jobs",
    Capability.SURVIVES_PROCESSES: "accepted jobs survive the end of every process of Headrace",
    Capability.SURVIVES_SERVER: "accepted jobs survive a crash of the server process",
    Capability.SURVIVES_MACHINE: "accepted jobs survive a crash of the server's machine",
    Capability.SURVIVES_FAILOVER: "accepted jobs survive a failover to a standby",
    Capability.TRANSACTIONAL_ENQUEUE: "a job can be enqueued in the caller's own transaction",
    Capability.HISTORY_ON_DISK: "what is kept is bounded by disk rather than by memory",
    Capability.HINTS: "work is noticed at once rather than by the poll",
}
