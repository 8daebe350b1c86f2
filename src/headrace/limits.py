"""Limits at run time: what people get as `app.limits`."""

from __future__ import annotations
