"""Files of runs: `app.files`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.engine.context import CURRENT
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.ids import parse_id
from headrace.model.reference import MAX_VALUE_BYTES, file_value, parse_file

if TYPE_CHECKING:
    from headrace.runtime import Runtime


class Files:
    """Bytes that tasks of a workflow hand on: they lie in the blob storage, and a small mark stands for them in JSON.

    A file belongs to its run and leaves with it. A run that repeats another and reuses an output has copies of its
    files. A mark says what the file is, not where it lies: in another run it stands for nothing.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> @app.task
    ... async def write() -> dict[str, object]:
    ...     return {"report": await app.files.put(b"all is well")}
    >>> @app.task
    ... async def read(made: dict[str, dict[str, object]]) -> str:
    ...     return (await app.files.get(made["report"])).decode()
    >>> workflow = app.workflow("reports", write.s() | read.s())
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         run = await app.start("reports")
    ...         print(await run.result("20s"))
    >>> import asyncio; asyncio.run(main())
    all is well
    """

    def __init__(self, runtime: Callable[[], Runtime]) -> None:
        self._runtime = runtime

    async def put(self, data: bytes) -> dict[str, Any]:
        """Store a file of the run that the calling task is a node of; return its mark, a JSON object.

        Putting the same bytes again, after a failed try too, gives the same mark. Up to 64 MiB. Raises ConfigError
        outside of a run, InvalidInputError, PayloadTooLargeError, BlobStoreError, StoreUnavailableError.
        """
        if not isinstance(data, bytes):
            raise InvalidInputError("data", "must be bytes", type(data).__name__)
        return file_value(await self._runtime().means.values.put_file(_run_of_task(None), data))

    async def get(self, reference: Mapping[str, Any], *, run: UUID | str | None = None) -> bytes:
        """Return the file that a mark stands for; members beside the mark are of no concern.

        `run`: the id of the run whose file it is; without it the run that the calling task is a node of. Raises
        InvalidInputError for what is no mark, BlobStoreError where the run has no such file, ConfigError outside of a
        run.
        """
        file = parse_file(reference)
        if file is None:
            raise InvalidInputError("reference", "must be what app.files.put returned", reference)
        return await self._runtime().means.values.get_file(_run_of_task(run), file)

    async def fetch(self, ref: str, *, most: int = MAX_VALUE_BYTES) -> bytes:
        """Return an object of the bucket of `[blob_storage]` that others put there: "s3://BUCKET/KEY".

        `most`: bytes that it may have, 64 MiB unless given. What Headrace keeps there itself is not to be had so.
        Raises InvalidInputError for what is no such reference, PayloadTooLargeError, NotFoundError, BlobStoreError,
        ConfigError where the blob storage is no bucket.
        """
        runtime = self._runtime()
        key, blobs = _key_of(ref, runtime.settings.blob_storage.bucket), runtime.means.values.blobs
        if blobs is None:
            raise ConfigError("there is no blob storage to fetch from: set [blob_storage] in headrace.toml")
        return await blobs.get_blob(key, most=most)


def _key_of(ref: str, bucket: str) -> str:
    scheme, _, rest = ref.partition("://")
    named, _, key = rest.partition("/")
    if scheme != "s3" or not named or not key:
        raise InvalidInputError("reference", "must be s3://BUCKET/KEY", ref)
    if named != bucket:
        rule = f"must be in the bucket of [blob_storage], {bucket!r}" if bucket else "needs [blob_storage] bucket"
        raise InvalidInputError("reference", rule, ref)
    if key.split("/")[1:2] == ["runs"]:
        raise InvalidInputError("reference", "must not name what a store keeps of its runs", ref)
    return key


def _run_of_task(run: UUID | str | None) -> UUID:
    if run is not None:
        return run if isinstance(run, UUID) else parse_id("run id", run)
    context = CURRENT.get()
    if context is None or context.run is None:
        fix = "call app.files in a task of a workflow, or name the run: app.files.get(reference, run=…)"
        raise ConfigError(f"files belong to runs, and this is no node of one: {fix}")
    return context.run.id
