"""`[webhooks]`: what signs messages to receivers, and how deliveries are tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv6Network

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.target_list import TargetList
from headrace.model.targets import TargetRules
from headrace.model.webhook import WEBHOOK_SPEC, parse_secret


def without(network: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return what is left of a network of IPv6 without others in it.

    >>> without("fc00::/7", ["fd00::/8"])
    ('fc00::/8',)
    """
    left = [IPv6Network(network)]
    for other in map(IPv6Network, others):
        apart = [part for one in left if other.subnet_of(one) for part in one.address_exclude(other)]
        left = [one for one in left if not other.subnet_of(one)] + apart
    return tuple(map(str, left))


#: What `allow_private` opens: this machine and private networks, and never the addresses where clouds keep secrets.
_SECRETS = ("fd00:ec2::/32", "fd20:ce::/32")
PRIVATE = ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", *without("fc00::/7", _SECRETS))
MOST_SECRETS = 2


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """`[webhooks]`: messages to receivers, signed by Standard Webhooks."""

    #: what signs messages: "whsec_…", and while it is exchanged the one before; in the environment with a comma between
    secrets: tuple[str, ...] = field(default=(), repr=False)
    #: longest time of one try, from the look-up of the name to the end of the answer
    timeout: timedelta = timedelta(seconds=10)
    #: a delivery that fails is tried again this long, then it is a dead letter
    retry_for: timedelta = timedelta(hours=24)
    #: longest wait before the second try; it doubles from try to try, and a part of it is waited that is drawn by lot
    first_retry: timedelta = timedelta(seconds=5)
    #: most that it grows to
    longest_retry: timedelta = timedelta(hours=1)
    #: true lets receivers be on this machine and in private networks
    allow_private: bool = False
    #: single targets beyond the public web, as in `[flows] allow_targets`
    allow_targets: tuple[str, ...] = ()

    @property
    def targets(self) -> TargetRules:
        """Return where messages may go. Raises InvalidInputError."""
        opened = (*(PRIVATE if self.allow_private else ()), *self.allow_targets)
        return TargetRules(TargetList.parse(opened, field="webhooks.allow_targets"), setting="[webhooks] allow_targets")


def check_webhooks(webhooks: WebhookSettings) -> None:
    """Check the rules of `[webhooks]`. Raises ConfigError, never with a secret in it."""
    try:
        for index, secret in enumerate(webhooks.secrets):
            parse_secret(secret, field=f"webhooks.secrets[{index}]")
        _ = webhooks.targets
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None
    count = len(webhooks.secrets)
    _require(count <= MOST_SECRETS, "secrets", "must be at most two: the one in use, and the one before", count)
    _bounded("timeout", webhooks.timeout, timedelta(seconds=60))
    _bounded("retry_for", webhooks.retry_for, timedelta(days=7))
    _bounded("first_retry", webhooks.first_retry, timedelta(hours=1))
    _bounded("longest_retry", webhooks.longest_retry, timedelta(hours=6))
    rule = f"must not be below webhooks.first_retry, {format_duration(webhooks.first_retry)}"
    shown = format_duration(webhooks.longest_retry)
    _require(webhooks.longest_retry >= webhooks.first_retry, "longest_retry", rule, shown)
    # Waits are drawn by lot, half of them on average, and the first ones are short: a third leaves room for both.
    least = webhooks.retry_for * 3 / WEBHOOK_SPEC.max_attempts
    rule = f"must be at least {format_duration(least)}, or the tries are used up before retry_for is over"
    _require(webhooks.longest_retry >= least, "longest_retry", rule, shown)


def _bounded(name: str, value: timedelta, most: timedelta) -> None:
    rule = f"must be longer than zero and at most {format_duration(most)}"
    _require(timedelta() < value <= most, name, rule, format_duration(value))


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"webhooks.{name} {rule}, got {value}")
