"""Prefect beside `workflows.py`: a flow of so many tasks that do nothing, on its own local server; prints ms a step."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time


def main(steps: int) -> None:
    """Run once to warm up, then measure."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"PREFECT_HOME": home, "PREFECT_LOGGING_LEVEL": "ERROR", "DO_NOT_TRACK": "1"}
        from prefect import flow, task  # its settings are read when it is imported
        from prefect.testing.utilities import prefect_test_harness

        @task
        async def noop(value: int) -> int:
            return value

        @flow
        async def chain() -> int:
            value = 1
            for _ in range(steps):
                value = await noop(value)
            return value

        with prefect_test_harness():
            asyncio.run(chain())
            began = time.perf_counter()
            asyncio.run(chain())
            print(json.dumps({"ms a step": 1000 * (time.perf_counter() - began) / steps}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
