"""When a failed attempt runs again: a pure decision from the error, the count of failures and a random number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.model.durations import parse_duration
from headrace.model.error_class import ErrorClass
from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.numbers import check_whole

Seconds = str | float | timedelta
#: An exception's class, or the class of a provider's error.
ErrorKind = type[BaseException] | ErrorClass

#: Larger factors reach every cap at the second failure anyway.
MAX_FACTOR = 1_000
#: From here on the wait is the cap, or will never reach it: MAX_FACTOR to this power is still a float.
_MAX_EXPONENT = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """A retry policy. `max_attempts` counts every run that may fail, the first included.

    Delays: fixed waits `base`; exponential waits a random time up to min(cap, base · factor^(failures − 1))
    ("full jitter": it spreads a herd best, see the AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
    `by_error` gives error classes a policy of their own; `never` fails them at once. Both take exceptions and, of model
    providers, an `ErrorClass`; see `on`.

    >>> Backoff.fixed("5s", max_attempts=3).delay(failures=1, random=0.5)
    datetime.timedelta(seconds=5)
    """

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=2)
    factor: float = 2.0
    jitter: bool = True
    max_attempts: int = 4
    #: The wait grows by `base` with each failure instead, up to `cap`.
    linear: bool = False
    #: Names of exception classes that are tried again; empty: all are.
    only: tuple[str, ...] = ()
    never: tuple[ErrorKind, ...] = ()
    by_error: Mapping[ErrorKind, Backoff] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("max_attempts", self.max_attempts, most=100)
        if not 1 <= self.factor <= MAX_FACTOR:
            raise InvalidInputError("factor", f"must be from 1 to {MAX_FACTOR}", self.factor)
        if self.base < timedelta():
            raise InvalidInputError("base", "must not be negative", self.base)
        if self.cap < self.base:
            raise InvalidInputError("cap", "must not be below base", self.cap)

    @classmethod
    def exponential(
        cls, *, max_attempts: int = 4, base: Seconds = "1s", cap: Seconds = "2m", factor: float = 2.0
    ) -> Backoff:
        """Return an exponential policy with full jitter."""
        base, cap = parse_duration(base, field="base"), parse_duration(cap, field="cap")
        return cls(base=base, cap=cap, factor=factor, max_attempts=max_attempts)

    @classmethod
    def fixed(cls, delay: Seconds, *, max_attempts: int = 4) -> Backoff:
        """Return a policy that always waits `delay`."""
        delay = parse_duration(delay, field="delay")
        return cls(base=delay, cap=delay, factor=1.0, jitter=False, max_attempts=max_attempts)

    @classmethod
    def none(cls) -> Backoff:
        """Return the policy of a single attempt."""
        return cls(max_attempts=1)

    def on(self, error: type[BaseException] | ErrorClass | str, policy: Backoff | None) -> Backoff:
        """Return this policy with `policy` for errors of class `error`; None fails at once. The last word counts.

        `error` is an exception's class, or an `ErrorClass` or its word: that counts for every error that carries it as
        its `error_class`. The first policy's `max_attempts` stays the most for all. Raises InvalidInputError for
        another word.

        >>> Backoff().on("overloaded", Backoff.fixed("30s")).on("bad_output", None).never
        (<ErrorClass.BAD_OUTPUT: 'bad_output'>,)
        """
        wanted = _kind(error) if isinstance(error, str) else error
        never = tuple(kind for kind in self.never if kind is not wanted)
        by_error = {kind: own for kind, own in self.by_error.items() if kind is not wanted}
        if policy is None:
            return replace(self, never=(*never, wanted), by_error=by_error)
        return replace(self, never=never, by_error={**by_error, wanted: policy})

    def delay(self, *, failures: int, random: float) -> timedelta:
        """Return the wait before the next attempt after `failures` failed ones; `random` lies in [0, 1)."""
        exponent = min(max(failures - 1, 0), _MAX_EXPONENT)
        growth = max(failures, 1) if self.linear else self.factor**exponent
        ceiling = min(self.cap.total_seconds(), self.base.total_seconds() * growth)
        return timedelta(seconds=ceiling * random if self.jitter else ceiling)

    def decide(self, error: BaseException, *, failures: int, random: float) -> timedelta | None:
        """Return how long to wait before trying again, or None to fail for good.

        `failures` counts this one. Errors of Headrace that declare themselves permanent are never tried again;
        a `retry_after` on the error is a floor under the wait.
        """
        policy = self._policy_for(error)
        if policy is None or failures >= policy.max_attempts:
            return None
        wait = policy.delay(failures=failures, random=random)
        retry_after = getattr(error, "retry_after", None)
        return max(wait, retry_after) if isinstance(retry_after, timedelta) else wait

    def _policy_for(self, error: BaseException) -> Backoff | None:
        for kind in _kinds_of(type(error)):
            if kind in self.never:
                return None
            if kind in self.by_error:
                return self.by_error[kind]
        if self.only and not {kind.__name__ for kind in type(error).__mro__} & set(self.only):
            return None
        if isinstance(error, HeadraceError) and not error.transient:
            return None
        return self


def _kind(word: str) -> ErrorClass:
    try:
        return ErrorClass(word)
    except ValueError:
        raise InvalidInputError("error", f"must be an exception or one of {', '.join(ErrorClass)}", word) from None


def _kinds_of(error: type[BaseException]) -> Iterator[ErrorKind]:
    """The exception, what it is one of, and the words that these carry; the nearest first."""
    for kind in error.__mro__:
        yield kind
        word = vars(kind).get("error_class")
        if isinstance(word, str) and word in ErrorClass.__members__.values():
            yield ErrorClass(word)
