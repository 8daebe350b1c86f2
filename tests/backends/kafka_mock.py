"""The cluster that librdkafka mocks within this process, for errors that no real broker gives when asked to."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: Numbers of requests in the protocol.
PRODUCE, METADATA, OFFSET_COMMIT = 0, 3, 8
_PRODUCER = 0


class MockCluster:
    """Brokers of a mocked cluster; topics have to be made."""

    def __init__(self, cluster: int) -> None:
        """`cluster` is librdkafka's pointer."""
        self._cluster = ctypes.c_void_p(cluster)

    @property
    def servers(self) -> str:
        """Their addresses."""
        library = _library()
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        answer: bytes = library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return answer.decode()

    def make_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic."""
        failed = _library().rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)
        assert not failed, f"the mocked cluster made no topic: error {failed}"

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        """Let a broker lead a partition; -1 stands for none."""
        failed = _library().rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)
        assert not failed, f"the mocked cluster set no leader: error {failed}"

    def fail_topic(self, name: str, error: int) -> None:
        """Tell an error whenever somebody asks for a topic."""
        _library().rd_kafka_mock_topic_set_error(self._cluster, name.encode(), error)

    def fail_requests(self, request: int, *errors: int) -> None:
        """Answer the next requests of a kind with errors, one each; 0 stands for none."""
        listed = (ctypes.c_int * len(errors))(*errors)
        _library().rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(errors)), listed
        )


@contextmanager
def mock_cluster(brokers: int = 1) -> Iterator[MockCluster]:
    """Run a mocked cluster."""
    library = _library()
    library.rd_kafka_new.restype = library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, None, None, 0))
    cluster = library.rd_kafka_mock_cluster_new(handle, brokers)
    try:
        yield MockCluster(cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(ctypes.c_void_p(cluster))
        library.rd_kafka_destroy(handle)


@cache
def _library() -> Any:
    """Return the librdkafka that confluent-kafka brings along."""
    spec = find_spec("confluent_kafka")
    assert spec and spec.origin, "install confluent-kafka"
    folder = Path(spec.origin).parent.with_name("confluent_kafka.libs")
    [found] = folder.glob("librdkafka*")
    return ctypes.CDLL(str(found))
