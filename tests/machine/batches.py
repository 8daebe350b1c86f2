"""Rules of those who submit batches: whole or streamed, in rounds, and cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.batch import BatchState, ClosePolicy, NewBatch, Slice
from headrace.model.errors import ConflictError
from headrace.model.job import JobSpec
from tests.machine.submitters import Submitters
from tests.machine.world import ARGS, CALLBACKS, callbacks, counts, delays, some, specs

UNSEALED = (BatchState.OPEN, BatchState.ABANDONED)


class Batches(Submitters):
    """Batches are made, filled, sealed, closed once per round, retried and cancelled."""

    def add_batch(self, new: NewBatch, count: int | None) -> None:
        """Create a batch, sealed with `count` items or open."""
        args = None if count is None else [ARGS] * count
        assert self.run(self.stores.batches.create_batch(new, args)) == new.id
        self.batches.append(new.id)
        self.lengths[new.id] = self.ends[new.id] = count or 0
        self.closings[new.id] += count == 0
        if new.on_close is not None:
            self.announced.add(new.id)

    @rule(
        spec=specs, count=st.integers(0, 4), limit=st.sampled_from([None, 0, 1]), callback=callbacks, delay=delays
    )  # fmt: skip
    def submit(self, spec: JobSpec, count: int, limit: int | None, callback: JobSpec | None, delay: timedelta) -> None:
        """Submit a batch of a known length, perhaps for later."""
        run_at = self.clock.now() + delay if delay else None
        new = NewBatch(spec, self.new_id(), policy=ClosePolicy(limit), on_close=callback, run_at=run_at)
        self.add_batch(new, count)
        again = self.snapshot()
        assert self.run(self.stores.batches.create_batch(new, [ARGS] * count)) == new.id
        assert self.snapshot() == again

    @rule(spec=specs, callback=callbacks)
    def open_batch(self, spec: JobSpec, callback: JobSpec | None) -> None:
        """Begin a batch whose length is not known yet."""
        self.add_batch(NewBatch(spec, self.new_id(), on_close=callback), None)

    @rule(key=st.sampled_from("mn"), body=st.sampled_from("xxy"), count=st.sampled_from([None, 0, 2]))
    def submit_keyed(self, key: str, body: str, count: int | None) -> None:
        """Submit a batch under a key: one body gives one batch, another is refused."""
        new = NewBatch(JobSpec("keyed", "left"), self.new_id(), key, body, on_close=CALLBACKS[0])
        if key not in self.batch_keys:
            self.add_batch(new, count)
            self.batch_keys[key] = (new.id, body)
            return
        known_id, known_body = self.batch_keys[key]
        call = self.stores.batches.create_batch(new, None if count is None else [ARGS] * count)
        if body == known_body:
            assert self.run(call) == known_id
        else:
            with pytest.raises(ConflictError):
                self.run(call)

    @precondition(lambda self: self.batches)
    @rule(which=some, count=counts, shift=st.sampled_from([0, 0, 0, -1, 1]), seal=st.booleans())
    def stream(self, which: int, count: int, shift: int, seal: bool) -> None:
        """Append a slice at the end, or where it overlaps or leaves a gap; an equal one is there already."""
        batch_id = self.batches[which % len(self.batches)]
        part = Slice(batch_id, max(self.ends[batch_id] + shift, 0), (ARGS,) * count, "hash")
        try:
            appended = self.run(self.stores.batches.append_slice(part))
        except ConflictError:
            assert shift < 0 or self.batch_state(batch_id) not in UNSEALED
            return
        if appended:
            self.lengths[batch_id] += count
            self.ends[batch_id] = part.first + count
        assert appended or shift
        assert not self.run(self.stores.batches.append_slice(part))
        if seal:
            self.seal(which, 0, None)

    @precondition(lambda self: self.batches)
    @rule(which=some, off=st.sampled_from([0, 0, 1]), key=st.sampled_from([None, "0", "1"]))
    def seal(self, which: int, off: int, key: str | None) -> None:
        """Declare the total, also a wrong one, or that of a former round."""
        batch_id = self.batches[which % len(self.batches)]
        total = self.lengths[batch_id] + off
        was, before = self.batch_state(batch_id), self.snapshot()
        try:
            self.run(self.stores.batches.seal_batch(batch_id, total=total, key=key))
        except ConflictError:
            assert self.snapshot() == before
        else:
            assert was in UNSEALED or self.snapshot() == before

    @precondition(lambda self: self.batches)
    @rule(which=some, how=st.sampled_from(["reopen", "retry", "cancel", "settle"]), limit=counts)
    def steer_batch(self, which: int, how: str, limit: int) -> None:
        """Open another round, retry what failed, cancel, or settle what is being cancelled."""
        batch_id, batches = self.batches[-1 - which % min(len(self.batches), 3)], self.stores.batches
        before = self.snapshot()
        try:
            match how:
                case "reopen":
                    self.run(batches.reopen_batch(batch_id, key=str(which % 3)))
                case "retry":
                    self.run(batches.retry_failed(batch_id))
                case "cancel":
                    self.run(batches.cancel_batch(batch_id))
                    self.look_at_claims("left", 8)
                case _:
                    self.run(batches.settle_cancelled(batch_id, limit=limit))
        except ConflictError:
            assert self.snapshot() == before

    @precondition(lambda self: self.batches)
    @rule(which=some, how=st.sampled_from(["pause", "pause", "hold", "resume"]), limit=counts, settles=st.booleans())
    def pause_or_resume(self, which: int, how: str, limit: int, settles: bool) -> None:
        """Pause a batch or resume it, as one who goes on with it or dies, or go on where somebody died."""
        batch_id, batches = self.batches[-1 - which % min(len(self.batches), 3)], self.stores.batches
        before = self.snapshot()
        if not self.is_paused(batch_id):
            self.still.discard(batch_id)
        if how == "pause":
            try:
                self.run(batches.pause_batch(batch_id, reason=f"reason {which % 2}"))
            except ConflictError:
                assert self.batch_state(batch_id) in (BatchState.CLOSED, BatchState.CANCELLING)
                assert self.snapshot() == before
                return
        elif how == "resume":
            self.run(batches.resume_batch(batch_id))
        if settles or how == "hold":
            while self.run(batches.settle_paused(batch_id, limit=limit)):
                pass
            if self.is_paused(batch_id):
                self.still.add(batch_id)
        self.look_at_claims("left", 8)

    def look_at_claims(self, queue: str, limit: int) -> None:
        """Claim as a worker that lives; see `Workers`."""
        raise NotImplementedError

    @rule()
    def close_batches(self) -> None:
        """Try to close everything, in any order."""
        self.note_closed(self.run(self.stores.batches.close_batches([*self.batches[::-1], *self.batches[:1]])))
        for batch_id in self.batches:
            progress = self.run(self.stores.inspect.batch_progress(batch_id))
            if self.batch_state(batch_id) in (BatchState.SEALED, BatchState.CANCELLING):
                assert progress.running + progress.waiting > 0
