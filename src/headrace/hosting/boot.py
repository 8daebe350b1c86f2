"""Run the supervisor without loading the rest of Headrace: it outlives its users, so it stays small (about 14 MB)."""

from __future__ import annotations

import sys
import types
from pathlib import Path

if __name__ == "__main__":
    package = types.ModuleType("headrace")
    package.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["headrace"] = package
    from headrace.hosting.supervisor import main

    main()
