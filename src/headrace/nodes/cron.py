"""cron: n8n's older trigger of times."""

from __future__ import annotations

from headrace.nodes.base import Shape, ours
from headrace.nodes.schedule import ScheduleType
from headrace.nodes.schedule_rules import time_cron, time_entries

TYPE = ScheduleType(
    "cron",
    ours("cron", "n8n-nodes-base.cron"),
    (1, 1),
    "begins runs at given times, in the older form",
    Shape.TRIGGER,
    time_entries,
    time_cron,
)
