"""What can go wrong with a model provider. Adapters sort faults into these by code and status (`providers/faults.py`).

ProviderError                  error_class:
├── RateLimitedError           rate_limited      the quota is used up for now (transient)
├── OverloadedError            overloaded        it has too much to do, for everybody (transient)
├── ProviderTimeoutError       timeout           no whole answer before the deadline (transient)
├── ProviderUnavailableError   provider_down     it cannot be reached, or failed itself (transient)
├── InvalidRequestError        invalid_request   it refused the request as it stands
│   └── ContextTooLongError    context_too_long  the prompt does not fit
├── ProviderAuthError          auth              the key or the account was refused
├── RefusedError               refused           the model declined to answer
└── BadOutputError             bad_output        the answers never became valid
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headrace.model.error_class import ErrorClass
from headrace.model.errors import HeadraceError
from headrace.model.quota import NO_HINT, QuotaHint
from headrace.model.usage import Usage


class ProviderError(HeadraceError):
    """The model provider failed."""

    code = "provider"
    #: What kind of error it is; None: an adapter of others did not say.
    error_class: ErrorClass | None = None

    def __init__(  # noqa: PLR0913 - what is known of a fault, all by name
        self,
        message: str | None = None,
        *,
        provider: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: timedelta | None = None,
        hint: QuotaHint = NO_HINT,
        maybe_paid: bool = False,
    ) -> None:
        super().__init__(message)
        #: Name of the provider, for example `openai`.
        self.provider = provider
        #: HTTP status, where there was one.
        self.status = status
        #: The provider's own id of the request, for its support.
        self.request_id = request_id
        #: How long the provider asked us to wait; None when it did not say.
        self.retry_after = retry_after if retry_after is not None else hint.retry_after
        #: What the provider said of its quota.
        self.hint = hint
        #: Whether the request may have been worked on, and paid for, though no answer came.
        self.maybe_paid = maybe_paid


class RateLimitedError(ProviderError):
    """The provider's quota is used up for now. Wait for `retry_after`, or lower the concurrency of the task."""

    code = "rate_limited"
    error_class = ErrorClass.RATE_LIMITED
    transient = True


class OverloadedError(ProviderError):
    """The provider has too much to do. The call can be tried again after `retry_after`."""

    code = "overloaded"
    error_class = ErrorClass.OVERLOADED
    transient = True


class ProviderUnavailableError(ProviderError):
    """The provider is unreachable or failed. Try again; check base_url ([llm.models.NAME], HEADRACE_LLM_BASE_URL)."""

    code = "provider_down"
    error_class = ErrorClass.PROVIDER_DOWN
    transient = True


class ProviderTimeoutError(ProviderError):
    """The provider gave no whole answer in time. Try again; raise timeout ([llm.models.NAME], HEADRACE_LLM_TIMEOUT)."""

    code = "provider_timeout"  # "timeout" is the code of TaskTimeoutError
    error_class = ErrorClass.TIMEOUT
    transient = True


class InvalidRequestError(ProviderError):
    """The provider refused the request. Check the model's name, or set its style to json if it knows no schemas."""

    code = "invalid_request"
    error_class = ErrorClass.INVALID_REQUEST


class ContextTooLongError(InvalidRequestError):
    """The prompt does not fit into the model's context. Shorten it, or split the document."""

    code = "context_too_long"
    error_class = ErrorClass.CONTEXT_TOO_LONG


class ProviderAuthError(ProviderError):
    """The provider refused key or account. Check credit and api_key ([llm.models.NAME], HEADRACE_LLM_API_KEY)."""

    code = "auth"
    error_class = ErrorClass.AUTH


class RefusedError(ProviderError):
    """The model declined to answer. Asking again gives the same; change the prompt or the document."""

    code = "refused"
    error_class = ErrorClass.REFUSED


class BadOutputError(ProviderError):
    """The model's answers stayed invalid after every repair. See `errors`; ask more simply or take another model."""

    code = "bad_output"
    error_class = ErrorClass.BAD_OUTPUT

    def __init__(  # noqa: PLR0913 - as above
        self,
        message: str | None = None,
        *,
        errors: Sequence[str] = (),
        provider: str | None = None,
        request_id: str | None = None,
        usage: Usage | None = None,
        hint: QuotaHint = NO_HINT,
    ) -> None:
        super().__init__(message, provider=provider, request_id=request_id, hint=hint, maybe_paid=True)
        #: What was wrong with the last answer, one line each.
        self.errors = tuple(errors)
        #: What the bad answer cost, where the provider said so and it is not counted yet.
        self.usage = usage or Usage()
