"""What a seed stands for in the world of pauses: who waits for what, what comes when, and who interferes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from headrace.model.event import Event
from headrace.model.resume_handle import NewHandle, NotedEvent, hash_token
from headrace.testing.simulation.faults import FINE, Weather
from headrace.testing.simulation.scenario import DRIFT, WRONG_SECONDS, Mishap, Place, Scenario

ASKED, MADE, KEPT, SEEN = "Shop.Order.Asked", "Shop.Order.Made", "Shop.Order.Kept", "Shop.Order.Seen"
#: Agents whose dead letters count, and one whose do not where agents are named.
PACKER, PAINTER = "packer", "painter"
#: So many at once, of pauses or of events of one pause.
MANY = 50
BEGIN, LATEST = 0.2, 6.0
#: What races comes within so many seconds of it.
CLOSE = 0.05
TIMEOUTS = (0.8, 2.0, 4.0, 9.0)


@dataclass(frozen=True, slots=True)
class Deed:
    """What a client does: "start" a job that waits, "cancel" the handle, "stop" the job, or use a "token"."""

    at: float
    kind: str
    #: Which pause.
    pause: int
    #: JSON text, with a token.
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """An event that is put on the bus, in a lane whose messages stay in order, so many times."""

    at: float
    lane: int
    noted: NotedEvent
    copies: int


@dataclass(frozen=True, slots=True)
class PauseScenario:
    """Everything a run is made of. `workers` has the weather, the places and the mishaps of workers."""

    workers: Scenario
    #: How many callback processes there are, and what happens to them: `Mishap.place` is the number of one.
    callbacks: int
    mishaps: tuple[Mishap, ...]
    pauses: tuple[NewHandle, ...]
    deeds: tuple[Deed, ...]
    sent: tuple[Sent, ...]


def draw_pauses(seed: int) -> PauseScenario:
    """Return the scenario of a seed."""
    chance = Random(f"pauses {seed}")  # noqa: S311 - a simulation, no secrets
    calm = chance.random() < 0.25
    places = tuple(_place(chance) for _ in range(chance.choice((1, 2))))
    callbacks = chance.choice((1, 2, 2))
    workers = Scenario(
        seed=seed, fifo=chance.random() < 0.3, weather=FINE if calm else _weather(chance), places=places,
        mishaps=() if calm else _mishaps(chance, len(places)), errands=(), keep_seconds=None, child_crashes=0.0,
    )  # fmt: skip
    mishaps = () if calm else _mishaps(chance, callbacks)
    return PauseScenario(workers, callbacks, mishaps, *_plot(chance))


def _place(chance: Random) -> Place:
    return Place(
        host=chance.choice("ab"), slots=chance.choice((2, 4, 20)), gated_slots=1, batch_size=100,
        poll_seconds=chance.choice((0.5, 1.0)), new=True, capped=True, rate=chance.choice((1.0, 1 - DRIFT, 1 + DRIFT)),
        offset=chance.choice((0.0, 1e3)), wrong=chance.choice((0.0, WRONG_SECONDS, -WRONG_SECONDS)),
    )  # fmt: skip


def _weather(chance: Random) -> Weather:
    begin = chance.uniform(1, LATEST)
    outage = (begin, begin + chance.choice((0.5, 2.0, 5.0)))
    return Weather(
        faults=chance.choice((0.0, 0.02, 0.08, 0.2)), journey=chance.choice((0.001, 0.005, 0.04)),
        outages=(outage,) if chance.random() < 0.25 else (), lost_hints=chance.choice((0.0, 0.3, 1.0)),
    )  # fmt: skip


def _mishaps(chance: Random, places: int) -> tuple[Mishap, ...]:
    kinds = ("crash", "crash", "freeze", "cut")
    return tuple(
        Mishap(chance.uniform(0.3, LATEST + 2), chance.choice(kinds), chance.randrange(places),
               chance.choice((0.3, 1.0, 6.0)))
        for _ in range(chance.choice((0, 1, 2, 3)))
    )  # fmt: skip


def _plot(chance: Random) -> tuple[tuple[NewHandle, ...], tuple[Deed, ...], tuple[Sent, ...]]:
    pauses, deeds, sent = [], [], []
    shape, at = chance.random(), chance.uniform(BEGIN, LATEST)
    for number in range(MANY if shape < 0.06 else chance.randint(1, 4)):
        if shape < 0.06:
            pause, at_once = _pause(chance, number, 1), True
        else:
            count = MANY if shape < 0.12 and not number else chance.choice((0, 1, 1, 1, 2, 3))
            pause, at_once, at = _pause(chance, number, count), count == MANY, chance.uniform(BEGIN, LATEST)
        pauses.append(pause)
        deeds += _deeds(chance, number, pause, at)
        sent += _events(chance, number, pause, at, at_once=at_once)
    return tuple(pauses), tuple(deeds), tuple(sent)


def _pause(chance: Random, number: int, count: int) -> NewHandle:
    asked = (ASKED,) if chance.random() < 0.5 else ()
    return NewHandle(
        f"c-{number}", (KEPT, MADE) if count else (), count, timedelta(seconds=chance.choice(TIMEOUTS)),
        request_types=asked, agents=(PACKER,) if asked and chance.random() < 0.5 else (),
        token_hash=hash_token(token_of(number)) if not count or chance.random() < 0.4 else "",
        target=f"flow:{number}" if chance.random() < 0.3 else "",
    )  # fmt: skip


def token_of(number: int) -> str:
    """Return the token of a pause."""
    return f"hrh_{number}"


def _moment(chance: Random, pause: NewHandle, at: float) -> float:
    """Return when something happens to a pause: as it begins, as it expires, or at any time."""
    close = chance.uniform(-CLOSE, CLOSE)
    begun, over = at + close, at + pause.timeout.total_seconds() + close
    return max(0.0, chance.choice((begun, begun, over, chance.uniform(0, over + 1), chance.uniform(0, over + 1))))


def _deeds(chance: Random, number: int, pause: NewHandle, at: float) -> list[Deed]:
    deeds = [Deed(at, "start", number) for _ in range(chance.choice((1, 1, 2)))]
    if chance.random() < 0.25:
        deeds.append(Deed(_moment(chance, pause, at), "cancel", number))
    if chance.random() < 0.15:
        deeds.append(Deed(_moment(chance, pause, at), "stop", number))
    if pause.token_hash:
        moment = _moment(chance, pause, at)
        payloads = chance.choice((("1",), ("1", "1"), ("1", "2"), ()))
        deeds += [Deed(moment, "token", number, payload) for payload in payloads]
    return deeds


def _events(chance: Random, number: int, pause: NewHandle, at: float, *, at_once: bool) -> list[Sent]:
    wanted, moment = pause.expect_count + chance.choice((-1, 0, 0, 0, 0, 1)), _moment(chance, pause, at)
    sent: list[Sent] = []
    for part in range(max(wanted, 0)):
        when = moment if at_once or chance.random() < 0.3 else _moment(chance, pause, at)
        sent += _part(chance, number, f"{number}-{part}", when)
    if chance.random() < 0.3:
        sent.append(_one(chance, number, f"{number}-x", SEEN, at))
    return sent


def _part(chance: Random, number: int, name: str, when: float) -> list[Sent]:
    """Return a result; before it perhaps its request, which perhaps became a dead letter, and was run again or not."""
    made = _one(chance, number, f"e-{name}", chance.choice((MADE, KEPT)), when)
    if chance.random() < 0.5:
        return [made]
    request = _one(chance, number, f"r-{name}", ASKED, when - chance.random())
    caused = replace(made, noted=NotedEvent(replace(made.noted.event, causation_id=request.noted.event.id)))
    lost = replace(
        request, at=when, noted=NotedEvent(request.noted.event, True, chance.choice((PACKER, PAINTER)), "no")
    )
    return chance.choice(([request, caused], [request, lost], [lost], [request, lost, caused]))


def _one(chance: Random, number: int, name: str, type_: str, when: float) -> Sent:
    event = Event(type_, "ShopOrder", f"o-{number}", name, f"c-{number}", id=name)
    return Sent(max(when, 0.0), chance.randrange(3), NotedEvent(event), chance.choice((1, 1, 1, 2, 3)))
