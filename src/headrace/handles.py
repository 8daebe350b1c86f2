"""A handle on one job."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from headrace.engine.operations import cancel_job
from headrace.engine.queries import Explained, explain_job
from headrace.engine.registry import TaskDef
from headrace.model.durations import parse_duration
from headrace.model.errors import JobCancelledError, JobFailedError, NotFoundError, ResultTimeoutError
from headrace.model.job import CancelAnswer, JobState

if TYPE_CHECKING:
    from headrace.app import App

R = TypeVar("R", covariant=True)


class JobHandle(Generic[R]):
    """One durable job: wait for it, look at it, ask why it waits, cancel it.

    >>> async def example(app: App) -> None:
    ...     handle = await summarise.enqueue("a text")  # doctest: +SKIP
    ...     print(await handle.result(timeout="30s"))  # doctest: +SKIP
    """

    def __init__(self, app: App, job_id: UUID, task: TaskDef | None = None) -> None:
        self._app = app
        self._task = task
        self.id = job_id

    def __repr__(self) -> str:
        return f"JobHandle({self.id})"

    async def result(self, timeout: float | str | timedelta | None = None) -> R:
        """Wait for the job and return what its handler returned, as the type its task is annotated with.

        `timeout` in seconds or as "30s"; None waits without end. Raises JobFailedError with the job's error,
        JobCancelledError, ResultTimeoutError (the job goes on), NotFoundError.
        """
        seconds = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        try:
            async with asyncio.timeout(seconds) as limit:
                view = await self._app.runtime.waiters.final(self.id)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ResultTimeoutError(
                f"job {self.id} did not end within {seconds:g} s; it goes on. Wait longer, or see "
                f"`headrace job show {self.id}`"
            ) from None
        if view.state is JobState.SUCCEEDED:
            task = self._task or self._app.registry.get(view.task)
            value: Any = view.result if task is None else task.codec.decode_result(view.result)
            return value  # type: ignore[no-any-return]
        why = f"{view.error.kind}: {view.error.message}" if view.error else "no error was recorded"
        kind = JobCancelledError if view.state is JobState.CANCELLED else JobFailedError
        attempts = "1 attempt" if view.attempt == 1 else f"{view.attempt} attempts"
        raise kind(f"job {self.id} ({view.task}) {view.state} after {attempts}: {why}")

    async def status(self) -> JobState:
        """Return where the job stands now. Raises NotFoundError."""
        view = await self._app.runtime.stores.inspect.get_job(self.id)
        if view is None:
            raise NotFoundError(f"no job {self.id}; it may have been pruned, see [recovery] in the settings")
        return view.state

    async def explain(self) -> Explained:
        """Say the one reason why the job is not running, or what became of it, as `headrace job explain` does.

        `str` of it is the sentence for people; `explanation` has the reason as a `WaitReason`, what it is about
        (`subject`), when time alone ends it (`until`) and the numbers (`facts`). Raises NotFoundError.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> @app.task(queue="llm")
        ... async def summarise(text: str) -> str: ...
        >>> async def main() -> None:
        ...     async with app:
        ...         handle = await summarise.enqueue("a text")
        ...         await app.pause("llm", reason="upgrade")
        ...         why = await handle.explain()
        ...         print(why.explanation.reason.value, "-", why)
        >>> import asyncio; asyncio.run(main())
        paused - queue llm is paused: upgrade (`headrace queue resume llm` lifts it)
        """
        runtime = self._app.runtime
        return await explain_job(runtime.stores, runtime.limiter, self.id)

    async def cancel(self) -> CancelAnswer:
        """Cancel the job: at once when it has not started, else by asking its worker. Raises NotFoundError."""
        return await cancel_job(self._app.runtime.stores, self.id)
