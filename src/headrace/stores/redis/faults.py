"""What goes wrong at a Redis server, sorted once: no answer of a server crosses a port as it is.

The messages carry the first words of a server's answer, never a command: payloads and passwords stand in those.
"""

from __future__ import annotations

import re

from headrace.model.errors import HeadraceError, NotAllowedError, StorageResetError, StoreUnavailableError
from headrace.stores.redis.addresses import STORE_URL


class RefusedError(HeadraceError):
    """The Redis server refused a command. Please report this as a bug."""

    def __init__(self, answer: str) -> None:
        super().__init__(f"The Redis server refused a command ({shown(answer)}). Please report this as a bug.")
        #: The server's answer: a word in capitals that says which kind it is, and a text.
        self.answer = answer

    @property
    def word(self) -> str:
        """The first word of the answer, such as NOSCRIPT."""
        return first_word(self.answer)


class StoreFullError(StoreUnavailableError):
    """The Redis server is full; nothing was accepted. Raise maxmemory or remove old jobs, then send the same again."""

    code = "store_full"


class NotTakenError(StoreUnavailableError):
    """The Redis server cannot take this now, nothing was done. It is tried again by itself."""

    def __init__(self, answer: str) -> None:
        super().__init__(
            f"The store cannot take this now ({shown(answer)}); nothing was done. It is tried again by itself; if it "
            "stays so, look at the Redis server."
        )
        #: Whether another server may be the one to ask.
        self.moved = first_word(answer) in MOVED


#: Nothing was done, and another server may be the one to ask: the primary moved, or there is none for a moment.
MOVED = frozenset({"READONLY", "MOVED", "ASK", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "UNBLOCKED"})
#: Nothing was done, and the same server will be ready soon.
NOT_READY = frozenset({"LOADING", "BUSY", "NOREPLICAS", "MISCONF"})
_NOT_ALLOWED = frozenset({"NOAUTH", "WRONGPASS", "NOPERM", "DENIED"})
#: Said to one connection too many, without a word of its own: others will end.
_NO_ROOM = "max number of clients"
#: What it says where no such word begins the answer.
_REFUSALS = ("ERR AUTH", "invalid password", "ACL failure in script")
#: Scripts put the server's own word behind "ERR" or in the middle of a text that names the script.
_INSIDE = re.compile(r"-?\b(OOM|READONLY|MISCONF|NOREPLICAS|NOPERM|MASTERDOWN)\b")
_SECRETS = re.compile(r"(?i)\b(auth|hello|password|pass|requirepass|masterauth)\b.*")
_LONGEST = 200


def first_word(answer: str) -> str:
    """Return the kind of an answer.

    >>> first_word("READONLY You can't write against a read only replica."), first_word("ERR -OOM command not allowed")
    ('READONLY', 'OOM')
    """
    word = answer.partition(" ")[0]
    if word == "ERR" or not word.isupper():
        inside = _INSIDE.search(answer)
        return inside[1] if inside else word
    return word


def shown(answer: str) -> str:
    """Return an answer as messages may show it: its first line, without what follows a word for a secret.

    >>> shown("ERR unknown command 'AUTH' with args beginning with: 'hunter2'")
    "ERR unknown command 'AUTH …"
    """
    line = answer.partition("\n")[0]
    return _SECRETS.sub(lambda match: f"{match[1]} …", line)[:_LONGEST]


def sort_answer(answer: str, setting: str = STORE_URL) -> HeadraceError:
    """Return the error of Headrace for an error that the server answered that `setting` names."""
    word = first_word(answer)
    if word == "OOM":
        return StoreFullError()
    if word in _NOT_ALLOWED or any(text in answer for text in _REFUSALS):
        return NotAllowedError(
            f"The Redis server refuses this user ({shown(answer)}). Correct user and password in {setting}, or grant "
            "the missing right (docs/explanation/redis-store.md lists the commands)."
        )
    if word == "STORAGE_RESET":
        return StorageResetError()
    if word in MOVED or word in NOT_READY or _NO_ROOM in answer:
        return NotTakenError(answer)
    return RefusedError(answer)


def unreachable(where: str, reason: object, setting: str = STORE_URL) -> StoreUnavailableError:
    """Return the error for a server that does not answer; `setting` names it."""
    text = str(reason).strip().partition("\n")[0] or type(reason).__name__
    return StoreUnavailableError(
        f"The Redis server cannot answer ({where}: {text}). Check that it runs and that {setting} points to it."
    )
