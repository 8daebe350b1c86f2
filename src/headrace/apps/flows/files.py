"""Files of flows: binary data of their runs, and the folder of `[flows] files`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.apps.flows.folder import Folder

if TYPE_CHECKING:
    from headrace import App


class RunFiles:
    """The `Files` of `nodes/services.py`, for nodes of one app's runs."""

    def __init__(self, app: App, root: Path | None = None) -> None:
        """`root`: the folder in the place of that of the settings."""
        self._app, self._root = app, root

    async def put(self, data: bytes, *, name: str, mime: str) -> dict[str, Any]:
        """Store data for the run; return its mark with name, type and size. Raises BlobStoreError and the like."""
        mark = await self._app.files.put(data)
        return {**mark, "fileName": name, "mimeType": mime, "fileSize": len(data)}

    async def get(self, binary: Mapping[str, Any]) -> bytes:
        """Return the data that stand behind a mark of this run. Raises InvalidInputError, BlobStoreError."""
        return await self._app.files.get(binary)

    async def find(self, pattern: str) -> AsyncIterator[str]:
        """Yield the paths below the folder that fit a pattern, in order. Raises NodeError."""
        for path in await asyncio.to_thread(self._folder.find, pattern):
            yield path

    async def read(self, path: str) -> bytes:
        """Return a file of the folder. Raises NodeError."""
        return await asyncio.to_thread(self._folder.read, path)

    async def write(self, path: str, data: bytes, *, append: bool) -> None:
        """Write a file of the folder, whole or not at all. Raises NodeError."""
        await asyncio.to_thread(self._folder.write, path, data, append=append)

    @property
    def _folder(self) -> Folder:
        settings = self._app.settings
        return Folder(self._root or settings.flows.files_below(settings.directory))
