"""From an app and its settings to what a process of a Ray cluster needs to open it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import ConfigError
from headrace.model.luggage import Luggage
from headrace.ray_settings import RAY
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.app import App

LOG = logging.getLogger("headrace.ray")

_OURS = "HEADRACE_"


def pack(app: App, settings: Settings) -> Luggage:
    """Return what each call brings along: a node may know nothing of this worker."""
    modules = {task.target.rpartition(":")[0] for task in app.registry if settings.executor_of(task.spec.queue) == RAY}
    modules |= _modules_with([*app.declared_workflows, *app.agents.values()])
    for name in sorted(set(settings.ray.env_vars) - os.environ.keys()):
        LOG.warning("ray.env_vars names %s, which this worker does not have: it goes to no node", name)
    named = {*settings.ray.env_vars, *(name for name in os.environ if name.startswith(_OURS))}
    environ = {name: os.environ[name] for name in sorted(named) if name in os.environ}
    # Who works in a copy of the folder would start another embedded store there, and look for large values there.
    environ["HEADRACE_DIRECTORY"] = str(settings.directory.resolve())
    if (blobs := settings.blob_storage.path) is not None:
        environ["HEADRACE_BLOB_STORAGE_PATH"] = str(blobs.resolve())
    # What Ray has copied to a node is worked in there.
    folder = "" if settings.ray.working_dir else str(Path.cwd())
    return Luggage(_place_of(app), tuple(sorted(modules)), environ, folder)


def _modules_with(things: Iterable[Any]) -> set[str]:
    """Return the modules in which some of these have a name: what declares them, or has imported them from there."""
    wanted = {id(thing) for thing in things}
    loaded = [(name, vars(module)) for name, module in list(sys.modules.items()) if hasattr(module, "__dict__")]
    # A script has no name by which others find it; where the app is in one, that is what is loaded.
    return {
        name for name, attributes in loaded
        if name != "__main__" and any(id(value) in wanted for value in list(attributes.values()))
    }  # fmt: skip


def _place_of(app: App) -> str:
    """Return where another process finds the app. Raises ConfigError."""
    for name, module in sorted(sys.modules.items(), key=lambda item: item[0] == "__main__"):
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is app and not attribute.startswith("__"):
                return f"{_place(name, module)}:{attribute}"
    raise ConfigError('executor = "ray" needs an app that other processes find: write `app = App()` into a module')


def _place(name: str, module: Any) -> str:
    if name != "__main__":
        return name
    if (spec := getattr(module, "__spec__", None)) is not None:
        return str(spec.name)
    if file := getattr(module, "__file__", None):
        return str(Path(file).resolve())
    raise ConfigError('executor = "ray" needs an app that other processes find: write it into a file')
