"""The classes of errors of model providers: few words that retry policies, pools and reports go by."""

from __future__ import annotations

from enum import StrEnum


class ErrorClass(StrEnum):
    """What kind of error a provider's is, whichever provider it is. `Backoff.on` takes one.

    >>> ErrorClass("rate_limited")
    <ErrorClass.RATE_LIMITED: 'rate_limited'>
    """

    #: the quota is used up for now
    RATE_LIMITED = "rate_limited"
    #: the provider has too much to do, for everybody
    OVERLOADED = "overloaded"
    #: no whole answer before the deadline
    TIMEOUT = "timeout"
    #: the prompt does not fit
    CONTEXT_TOO_LONG = "context_too_long"
    #: the model declined, or a filter did
    REFUSED = "refused"
    #: the request is wrong as it stands
    INVALID_REQUEST = "invalid_request"
    #: the key or the account was refused, or has no credit
    AUTH = "auth"
    #: what came is no valid answer
    BAD_OUTPUT = "bad_output"
    #: it cannot be reached, or failed itself
    PROVIDER_DOWN = "provider_down"
