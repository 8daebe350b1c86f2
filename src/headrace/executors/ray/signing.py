"""Whether a call has begun: signed in the store by the process that begins it, or by the worker that gives it up."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID, uuid4

from headrace.model.errors import ExecutorCrashedError, ExecutorLostError, FenceLostError
from headrace.model.farm import BEGUN, ENDED, Begun, Fence, of_attempt
from headrace.model.job import Completion
from headrace.ports.job_store import JobStore
from headrace.ports.wire import decode_completion


class Signer:
    """Signs for calls of which nobody knows whether they began, so that they cannot any more.

    All raise StoreUnavailableError, and may be asked again.
    """

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._id = uuid4().hex

    async def end(self, fence: Fence) -> Completion | None:
        """Return the end of a call whose process had to die before it could answer; None: it kept none."""
        stored = await self._jobs.read_steps([(fence.job, ENDED)])
        kept = of_attempt(stored.get((fence.job, ENDED)), fence.attempt)
        return None if kept is None else decode_completion(kept)

    async def lost(self, fence: Fence, why: str) -> ExecutorLostError:
        """Return the error of a call that was lost; who began it first is found, or nobody can any more."""
        return ExecutorLostError(why, begun=await self._begun(fence) is not None)

    async def crashed(self, fence: Fence, why: str) -> ExecutorCrashedError | ExecutorLostError:
        """Return the error of a call whose process died: one that had not begun it did not die of it."""
        if (begun := await self._begun(fence)) is None:
            return ExecutorLostError(f"{why}, before it began")
        return ExecutorCrashedError(why, progressed=begun.progressed(await self._jobs.load_steps(fence.job)))

    async def _begun(self, fence: Fence) -> Begun | None:
        """Return who began a call; None: nobody did, and nobody can.

        The sign is the same however often it is written: one whose answer was lost is found as ours.
        """
        sign = Begun("", 0, 0.0, self._id, fence.attempt)
        try:
            stored = await self._jobs.save_step(
                fence.job, attempt=fence.attempt, session=fence.session, name=BEGUN, value=sign.text
            )
        except FenceLostError:
            # It may have, and what is written for it is refused.
            return sign
        kept = of_attempt(stored, fence.attempt)
        begun = sign if kept is None else Begun.of(kept)
        return None if begun.sign == sign.sign else begun

    async def seen(self, fences: Collection[Fence]) -> set[Fence]:
        """Return those calls that have begun, by one read."""
        wanted: list[tuple[UUID, str]] = [(fence.job, BEGUN) for fence in fences]
        stored = await self._jobs.read_steps(wanted) if wanted else {}
        kept = {fence: of_attempt(stored.get((fence.job, BEGUN)), fence.attempt) for fence in fences}
        # One of ours says that nobody can any more, though its answer was lost.
        return {fence for fence, one in kept.items() if one is not None and Begun.of(one).sign != self._id}
