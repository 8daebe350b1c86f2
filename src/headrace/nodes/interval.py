"""interval: n8n's older trigger of every few minutes or hours."""

from __future__ import annotations

from headrace.nodes.base import Shape, ours
from headrace.nodes.schedule import ScheduleType
from headrace.nodes.schedule_rules import plain_cron, plain_entries

TYPE = ScheduleType(
    "interval",
    ours("interval", "n8n-nodes-base.interval"),
    (1, 1),
    "begins runs every few minutes or hours, in the older form",
    Shape.TRIGGER,
    plain_entries,
    plain_cron,
)
