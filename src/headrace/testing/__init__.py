"""What tests of apps need: an app in memory, its work done at once, and a look at what was enqueued.

`in_memory` lends an app a store in memory, `drain` works it off, `inline` runs every job as it is enqueued, and
`assert_enqueued` looks. `headrace.testing.plugin` has a fixture of pytest over them. See docs/howto/test-your-tasks.md.
Besides: `headrace.testing.provider`, a scripted model, and `headrace.testing.simulation`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.apps import in_memory
    from headrace.testing.draining import drain
    from headrace.testing.enqueued import assert_enqueued
    from headrace.testing.inlining import inline

__all__ = ["assert_enqueued", "drain", "in_memory", "inline"]

_PLACES = {"assert_enqueued": "enqueued", "drain": "draining", "in_memory": "apps", "inline": "inlining"}


def __getattr__(name: str) -> Any:
    """Import on first use: who only wants a scripted model does not pay for the rest."""
    if name in __all__:
        return getattr(import_module(f"headrace.testing.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
