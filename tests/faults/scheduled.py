"""An app with a schedule: every minute, and all that was missed.

It is an app of its own: whoever imported this would give the app of the other fault tests jobs that they did not ask
for, whenever a minute begins.
"""

from __future__ import annotations

from headrace import App
from tests.faults.tasks import note

NAME = "minutely"

app = App()


@app.task
async def mark(number: int) -> None:
    """Leave a line and nothing else."""
    note("start", number)


app.schedule(mark, "* * * * *", name=NAME, catch_up="all", args=[1])
