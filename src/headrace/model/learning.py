"""How a flow is found whose limit is unknown, or told wrongly: by growing until refused, and remembering where.

All functions are pure. A flow is any number above zero: calls per second, or a part of what the limits allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: What a refusal leaves of a flow.
DECREASE = 0.7
#: Where the flow between two refusals is known, they leave it, but no less than this part of the last.
MOST_DECREASE = 0.6
#: Where the provider's own flow could be told from the time between two refusals: a little below it.
BELOW = 0.98
#: A refusal lowers a flow at least by this.
LEAST_DECREASE = 0.95
#: How fast a flow grows that was never refused: by this per second.
START_GROWTH = 1.56
#: The part of the way back to just below the refused flow that is made up per second.
RETURN = 0.7
#: Near the refused flow it grows by this part of it per second …
CREEP = 0.006
#: … and once it is above by this, faster and faster: the limit has risen.
ABOVE, RISE = 1.03, 0.5
#: So far above it what was refused says nothing any more.
DISPROVED = 1.3
#: Fewer refusals per call are seldom, over so many of the latest calls; at first so many are thought to be refused.
SELDOM, MOST_CALLS, FIRST_CALLS = 0.05, 200, 2
#: The least flow: one call in so many seconds is still sent, or nothing would ever be learnt again.
LEAST_FLOW = 1e-3


@dataclass(frozen=True, slots=True)
class Learnt:
    """A flow, and the one at which the provider refused last; None: it never did."""

    flow: float
    refused: float | None = None


def cut(learnt: Learnt, *, between: float | None = None) -> Learnt:
    """Return what is left after the provider refused; ask once per closing, not once per refusal.

    `between`: the mean flow since the refusal before. A provider that had nothing left then, and has nothing left now,
    lets just that much flow: it is known, and need not be felt for.

    >>> cut(Learnt(100.0))
    Learnt(flow=70.0, refused=100.0)
    >>> cut(Learnt(70.0, refused=100.0), between=50.0)
    Learnt(flow=49.0, refused=50.0)
    """
    if between is None:
        return Learnt(max(LEAST_FLOW, DECREASE * learnt.flow), learnt.flow)
    least = MOST_DECREASE * learnt.flow
    refused = min(learnt.flow, max(between, least))
    return Learnt(max(LEAST_FLOW, least, min(LEAST_DECREASE * learnt.flow, BELOW * refused)), refused)


def grow(learnt: Learnt, seconds: float, *, ceiling: float | None = None) -> Learnt:
    """Return the flow after so many seconds in which it was all used; where less was asked for there is no growth.

    `ceiling`: what the limits allow. Fast back to just below what was refused, then slowly past it, then fast again.

    >>> grow(Learnt(100.0), 1.0)
    Learnt(flow=156.0, refused=None)
    >>> grow(Learnt(100.0, refused=100.0), 1.0).flow
    100.6
    """
    refused = learnt.refused
    if refused is None:
        flow = learnt.flow * START_GROWTH**seconds
    elif learnt.flow < BELOW * refused:
        flow = learnt.flow + (BELOW * refused - learnt.flow) * min(1.0, RETURN * seconds) + CREEP * refused * seconds
    else:
        flow = learnt.flow + (CREEP * refused + RISE * max(0.0, learnt.flow - ABOVE * refused)) * seconds
    if ceiling is not None and flow >= ceiling:
        return Learnt(ceiling)
    disproved = refused is not None and flow > DISPROVED * refused
    return Learnt(flow, None if disproved else refused)


def unexplained(learnt: Learnt) -> Learnt:
    """Return what is left after a refusal now and then, while less was sent than flows: the flow was not the reason.

    A provider that is busy refuses so. To send less would not help, and if the flow is wanted later, it may grow fast.

    >>> unexplained(Learnt(70.0, refused=100.0))
    Learnt(flow=70.0, refused=None)
    """
    return Learnt(learnt.flow)


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many of the latest calls closed a pool; at first they are thought to be many."""

    share: float = 1.0
    calls: int = FIRST_CALLS

    @property
    def seldom(self) -> bool:
        """Whether they are so few that a provider may be busy now and then, rather than asked too much."""
        return self.share < SELDOM

    def after(self, *, refused: bool) -> Refusals:
        """Return the share with one more call.

        >>> Refusals().after(refused=False).after(refused=True).share
        0.75
        """
        calls = min(self.calls + 1, MOST_CALLS)
        return Refusals(self.share + (refused - self.share) / calls, calls)


#: Answers that are needed to know how long a token takes.
ENOUGH = 20
#: Smoothing of what is usual, and of the last answers.
SLOWLY, QUICKLY = 0.01, 0.2
#: So many times slower than usual is no chance.
TOLERANCE = 1.7


@dataclass(frozen=True, slots=True)
class TokenTime:
    """Seconds per token of answers: what is usual, what it was lately, and over how many answers.

    Never the time of whole answers: long ones take long.
    """

    usual: float = 0.0
    lately: float = 0.0
    answers: int = 0

    def after(self, seconds: float) -> TokenTime:
        """Return what is known after one more answer.

        >>> TokenTime().after(0.02)
        TokenTime(usual=0.02, lately=0.02, answers=1)
        """
        if self.answers == 0:
            return TokenTime(seconds, seconds, 1)
        slowly = SLOWLY if self.answers >= ENOUGH else 1 / (self.answers + 1)
        return TokenTime(
            self.usual + slowly * (seconds - self.usual),
            self.lately + QUICKLY * (seconds - self.lately),
            min(self.answers + 1, 1_000_000),
        )

    @property
    def gradient(self) -> float:
        """The part of its flow that a provider which has become slow can bear, from 0.5 to 1.

        >>> round(TokenTime(usual=0.02, lately=0.04, answers=50).gradient, 6)
        0.85
        """
        if self.answers < ENOUGH or self.lately <= 0:
            return 1.0
        return min(1.0, max(0.5, TOLERANCE * self.usual / self.lately))

    def restarted(self) -> TokenTime:
        """Return it with what is usual kept, and what was lately forgotten: after the flow was lowered for it."""
        return replace(self, lately=self.usual)


def slow(learnt: Learnt, gradient: float) -> Learnt:
    """Return what is left when tokens take longer than usual.

    >>> slow(Learnt(100.0), 0.8)
    Learnt(flow=80.0, refused=100.0)
    """
    return Learnt(max(LEAST_FLOW, max(DECREASE, gradient) * learnt.flow), learnt.flow)
