"""Changes of the buffer table: from where they are told, what they say, and what follows from them."""

from headrace.apps.memory.changes.consumer import register_consumer
from headrace.apps.memory.changes.reading import record_of
from headrace.apps.memory.changes.trigger import no_trigger_sql, topic_of, trigger_sql

__all__ = ["no_trigger_sql", "record_of", "register_consumer", "topic_of", "trigger_sql"]
