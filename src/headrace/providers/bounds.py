"""Bounds on what a provider may send: an answer of 50 MB must not fill a worker's memory."""

from __future__ import annotations

from headrace.model.provider_errors import BadOutputError
from headrace.providers.usage import UNKNOWN_USAGE

#: The longest answers of today's models are some hundred thousand tokens, a few MB.
LARGEST_ANSWER = 8 * 1024 * 1024
#: A stream has 200 to 300 bytes round each token, and is never in memory as a whole; vectors are long and wanted.
LARGEST_TRANSFER = 64 * 1024 * 1024
#: An error says what is wrong in a few lines, or in the page of a proxy.
LARGEST_ERROR = 1024 * 1024


def too_large(bound: int = LARGEST_ANSWER) -> BadOutputError:
    """The error for a body that grew beyond its bound; it was paid for, and nobody knows how much."""
    return BadOutputError(
        f"the provider sent more than {bound} bytes; the rest was refused",
        errors=[f"the answer is larger than {bound} bytes"],
        usage=UNKNOWN_USAGE,
    )
