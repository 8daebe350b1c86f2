"""Quotas of providers, shared by all processes through the limiter: reserve before a call, settle after it."""

from __future__ import annotations

from headrace.llm.quota.quotas import Quotas
from headrace.llm.quota.reservation import Reservation
from headrace.llm.quota.values import PoolStats, QuotaWait, gate_name

__all__ = ["PoolStats", "QuotaWait", "Quotas", "Reservation", "gate_name"]
