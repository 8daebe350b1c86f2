"""What the model is asked about users' messages, and how its answers become facts, events and changes of profiles.

Everything that the model sees of users is data in its prompts; everything that it answers is checked item by item.
"""

from headrace.apps.memory.writing.asking import NoModelError
from headrace.apps.memory.writing.language import language_of
from headrace.apps.memory.writing.packing import pack_context
from headrace.apps.memory.writing.prompts import PROMPT_VERSION
from headrace.apps.memory.writing.terms import Terms
from headrace.apps.memory.writing.tokens import count_tokens
from headrace.apps.memory.writing.writer import Writer

__all__ = ["PROMPT_VERSION", "NoModelError", "Terms", "Writer", "count_tokens", "language_of", "pack_context"]
