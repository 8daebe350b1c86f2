"""Rules of memory, pure: what goes first, what is asked of the model together, and how much of it at once."""

from __future__ import annotations

from headrace.apps.memory.rules.batching import Candidate, batch_size, group_flushes
from headrace.apps.memory.rules.breakers import BREAKERS
from headrace.apps.memory.rules.complexity import Complexity, complexity_of
from headrace.apps.memory.rules.mode import SIZES, Mode, choose_mode, mode_of
from headrace.apps.memory.rules.pace import Call, Pace, pace_of
from headrace.apps.memory.rules.priority import priority_of, score

__all__ = [
    "BREAKERS",
    "SIZES",
    "Call",
    "Candidate",
    "Complexity",
    "Mode",
    "Pace",
    "batch_size",
    "choose_mode",
    "complexity_of",
    "group_flushes",
    "mode_of",
    "pace_of",
    "priority_of",
    "score",
]
