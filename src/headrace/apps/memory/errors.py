"""What may become of work on the memory of users. A class's docstring is its default message.

HeadraceError
├── LostFlushError     the flush is held by someone else by now, or was deleted with its user
└── ProfileBusyError   others change the profile faster than it can be merged
"""

from __future__ import annotations

from headrace import HeadraceError


class LostFlushError(HeadraceError):
    """The flush is not held by this worker any more. Stop working on it: nothing was written, and another goes on."""

    code = "flush_lost"


class ProfileBusyError(HeadraceError):
    """Others change the profile again and again while a flush is merged with it. It is tried again later."""

    code = "profile_busy"
    transient = True
