"""A member of a group in a process of its own, to be killed. It prints the partitions it reads, and commits nothing.

`python -m tests.integration.kafka_member SERVERS TOPIC GROUP`
"""

from __future__ import annotations

import asyncio
import sys

from headrace.event_settings import EventSettings, KafkaSettings
from tests.backends.kafka import SESSION
from tests.integration.kafka_reading import reading


async def _read(servers: str, topic: str, group: str) -> None:
    settings = EventSettings(kafka=KafkaSettings(servers, session_timeout=SESSION))
    async with reading(settings, topic, group=group) as reader:
        while True:
            await reader.read()
            if reader.got:
                print(*sorted({delivery.partition for delivery in reader.got}), flush=True)
                reader.got.clear()


if __name__ == "__main__":
    asyncio.run(_read(*sys.argv[1:4]))
