"""A real PostgreSQL in a directory of the user's, started on first use and stopped after the last.

See docs/explanation/embedded-postgres.md for its states, its locks and what is not promised.
"""

from headrace.stores.postgres.embedded.errors import (
    AccountError,
    BinariesError,
    DataDirectoryError,
    OtherMajorVersionError,
    PostgresNotReadyError,
    PostgresStartError,
)
from headrace.stores.postgres.embedded.server import EmbeddedPostgres, start_embedded

__all__ = [
    "AccountError",
    "BinariesError",
    "DataDirectoryError",
    "EmbeddedPostgres",
    "OtherMajorVersionError",
    "PostgresNotReadyError",
    "PostgresStartError",
    "start_embedded",
]
