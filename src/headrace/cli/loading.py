"""From `MODULE:app` on the command line to the app, with an error a person can act on when that fails."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from headrace.app import App
from headrace.model.errors import ConfigError

DEFAULT_ATTRIBUTE = "app"


class Target(NamedTuple):
    """What is to be imported: the folder that has to be on the path, the module's dotted name, the app in it."""

    folder: Path
    module: str
    attribute: str


def load_app(text: str) -> App:
    """Import the app named `module:attribute` or `path/file.py:attribute`; the attribute is `app` by default.

    The working directory (for a file: the folder its package lies in) is put on the path, also for child processes.
    Raises ConfigError that says what failed and where.
    """
    target = parse_target(text)
    _put_on_path(target.folder)
    module = _import(target)
    return _find_app(module, target)


def parse_target(text: str) -> Target:
    """Return what `text` names. Raises ConfigError when it cannot be a module or does not exist as a file."""
    place, _, attribute = text.partition(":")
    attribute = attribute or DEFAULT_ATTRIBUTE
    if not all(part.isidentifier() for part in attribute.split(".")):
        raise ConfigError(f"{text!r} is not MODULE:app: {attribute!r} is not a Python name")
    if place.endswith(".py") or os.sep in place:
        return _target_of_file(Path(place), attribute)
    if not all(part.isidentifier() for part in place.split(".")):
        raise ConfigError(f"{text!r} is not MODULE:app; write a module such as `shop.jobs:app`, or `shop/jobs.py:app`")
    return Target(Path.cwd(), place, attribute)


def _target_of_file(path: Path, attribute: str) -> Target:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    path = path.absolute()
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    return Target(folder, ".".join(names), attribute)


def _put_on_path(folder: Path) -> None:
    """Let this process and its children import from `folder` first."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, inherited)])


def _import(target: Target) -> ModuleType:
    try:
        return importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        if error.name is not None and (target.module + ".").startswith(error.name + "."):
            raise ConfigError(
                f"there is no module {target.module!r} in {target.folder} or among the installed packages"
            ) from None
        raise _broken(target, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(target, error) from error


def _broken(target: Target, error: BaseException) -> ConfigError:
    """Say in one line what importing the module raised, and where."""
    message = " ".join(str(error).split()) or "no message"
    where = f" ({_place_of(error)})" if _place_of(error) else ""
    return ConfigError(f"{target.module} cannot be imported: {type(error).__name__}: {message}{where}")


def _place_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    here = Path(__file__)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        foreign = frame.filename.startswith("<frozen") or frame.filename == importlib.__file__
        # Code of ours is where a wrong option is found, not where it stands.
        if not foreign and here.parent.parent not in Path(frame.filename).parents:
            return f"{frame.filename}:{frame.lineno}"
    return ""


def _find_app(module: ModuleType, target: Target) -> App:
    found: Any = module
    try:
        for name in target.attribute.split("."):
            found = getattr(found, name)
    except AttributeError:
        raise ConfigError(f"{target.module} has no {target.attribute!r}; {_apps_of(module)}") from None
    if not isinstance(found, App):
        kind = type(found).__name__
        raise ConfigError(f"{target.module}:{target.attribute} is a {kind}, not a headrace.App; {_apps_of(module)}")
    return found


def _apps_of(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, App)]
    if names:
        return f"its apps are: {', '.join(f'{module.__name__}:{name}' for name in names)}"
    return "it holds no app: write `app = headrace.App()` there"
