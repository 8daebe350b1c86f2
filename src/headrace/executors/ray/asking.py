"""What all workers of a cluster want of its autoscaler: each notes its part at the head node, and asks for the sum.

A request to Ray's autoscaler replaces the last one, whoever it came from, and stays when its driver has ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

from headrace.executors.ray.fitting import Amounts

#: A part is noted again after so long: a head node that has begun again has none.
NOTE_SECONDS = 60.0
#: One that was not noted again for so long, by the clocks of workers, is of one that died.
STALE_SECONDS = 180.0
#: No more bundles than this are asked for at once.
MOST_BUNDLES = 10_000


def part_of(bundles: Iterable[Amounts], now: float) -> bytes:
    """Return a part as it is noted.

    >>> part_of([{"CPU": 1.0}] * 3, now=5.0)
    b'{"at": 5.0, "wants": [[3, {"CPU": 1.0}]]}'
    """
    counts = Counter(tuple(sorted(bundle.items())) for bundle in bundles)
    return json.dumps({"at": now, "wants": [[count, dict(bundle)] for bundle, count in counts.items()]}).encode()


def total_of(parts: Iterable[bytes], now: float) -> list[dict[str, float]]:
    """Return what is wanted by parts that are not stale; what is none counts for nothing.

    >>> total_of([part_of([{"CPU": 1.0}], 5.0), part_of([{"GPU": 2.0}], 5.0), b"?"], now=9.0)
    [{'CPU': 1.0}, {'GPU': 2.0}]
    """
    found: list[dict[str, float]] = []
    for part in parts:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            said = json.loads(part)
            if now - said["at"] < STALE_SECONDS:
                found += _bundles(said["wants"], MOST_BUNDLES - len(found))
    return found


def is_stale(part: bytes, now: float) -> bool:
    """Whether a part counts for nothing and is to be removed."""
    return not total_of([part], now)


def _bundles(wants: Iterable[tuple[int, Mapping[str, float]]], most: int) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    for count, bundle in wants:
        amounts = {str(name): float(amount) for name, amount in bundle.items()}
        found += [amounts] * max(0, min(int(count), most - len(found)))
    return found
