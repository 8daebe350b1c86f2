"""Rules of those who submit single jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.errors import ConflictError
from headrace.model.job import KEY_LIFETIME, JobSpec, NewJob
from tests.machine.world import ARGS, World, counts, delays, some, specs


class Submitters(World):
    """Jobs go in: once, however often they are sent, and each key for one of them."""

    @rule(spec=specs, count=counts, delay=delays)
    def insert(self, spec: JobSpec, count: int, delay: timedelta) -> None:
        """Insert jobs; sent again because the answer was lost, they change nothing."""
        run_at = self.clock.now() + delay if delay else None
        new = [NewJob(spec, ARGS, self.new_id(), run_at) for _ in range(count)]
        assert self.run(self.stores.jobs.insert_jobs(new)) == [job.id for job in new]
        assert {job.id for job in new} <= {job.id for job in self.jobs()}
        self.sent += new
        again = self.snapshot()
        self.run(self.stores.jobs.insert_jobs(new, retrying=True))
        assert self.snapshot() == again

    @precondition(lambda self: self.sent)
    @rule(which=some, count=counts)
    def send_again(self, which: int, count: int) -> None:
        """Send jobs of long ago again, as one who never got an answer; those that are stored stay as they are."""
        again = [self.sent[(which + step) % len(self.sent)] for step in range(min(count, len(self.sent)))]
        assert self.run(self.stores.jobs.insert_jobs(again, retrying=True)) == [job.id for job in again]

    @rule(key=st.sampled_from("ab"), bodies=st.sampled_from(["x", "x", "y", "xx", "xy"]), late=st.booleans())
    def insert_keyed(self, key: str, bodies: str, late: bool) -> None:
        """Insert jobs of one key: all get the id of the first, or none is stored where a body differs."""
        spec = JobSpec("keyed", "left")
        new = [NewJob(spec, ARGS, self.new_id(), key=key, body_hash=body) for body in bodies]
        known_id, known_body, until = self.keys.get(key, (new[0].id, bodies[0], self.clock.now() + KEY_LIFETIME))
        if until <= self.clock.now():
            known_id, known_body, until = new[0].id, bodies[0], self.clock.now() + KEY_LIFETIME
        before = self.snapshot()
        if set(bodies) != {known_body}:
            with pytest.raises(ConflictError):
                self.run(self.stores.jobs.insert_jobs([NewJob(JobSpec("keyed"), ARGS, self.new_id()), *new]))
            assert self.snapshot() == before
            return
        assert self.run(self.stores.jobs.insert_jobs(new, retrying=late)) == [known_id] * len(new)
        self.keys[key] = (known_id, known_body, until)
