"""Events on Kafka, or on a broker of its protocol, by `confluent-kafka`: the extra `headrace[kafka]`.

librdkafka blocks its callers, so each client has a thread of its own (`thread.py`) and is touched by no other: the
event loop only hands it calls and takes what came. No transactions are used: messages arrive at least once.
"""

from __future__ import annotations

from headrace.buses.kafka.bus import KafkaBus

__all__ = ["KafkaBus"]
