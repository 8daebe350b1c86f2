"""The app of the other fault tests with a schedule, which they must not have: every minute, and all that was missed."""

from __future__ import annotations

from tests.faults.tasks import app, mark

NAME = "minutely"

app.schedule(mark, "* * * * *", name=NAME, catch_up="all", args=[1])
