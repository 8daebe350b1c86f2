"""DBOS beside `workflows.py`: a workflow of so many steps that do nothing, each checkpointed; prints ms a step."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from dbos import DBOS


@DBOS.step()
async def noop(value: int) -> int:
    """Do nothing."""
    return value


@DBOS.workflow()
async def chain(steps: int) -> int:
    """Run one step after the other."""
    value = 1
    for _ in range(steps):
        value = await noop(value)
    return value


async def main(steps: int) -> None:
    """Run once to warm up, then measure."""
    config: Any = {
        "name": "bench", "system_database_url": os.environ["BENCH_DSN"], "log_level": "WARNING",
        "run_admin_server": False,
    }  # fmt: skip
    DBOS(config=config)
    DBOS.launch()
    await chain(steps)
    began = time.perf_counter()
    await chain(steps)
    took = time.perf_counter() - began
    print(json.dumps({"ms a step": 1000 * took / steps}))
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
