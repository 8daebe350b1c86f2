"""Whom a service answers: to which names, and whether all have to show a token."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace.model.errors import ConfigError
from headrace.service_settings import LOCALHOST


@dataclass(frozen=True, slots=True)
class Access:
    """What the service asks of everybody. As it is made without arguments, it is for this machine alone."""

    #: Whether a token is needed; one that is sent is checked in any case.
    required: bool = False
    #: Names that it answers to besides this machine's own; None: to any.
    hosts: frozenset[str] | None = frozenset()
    #: Where people find it behind a proxy; empty: at its own address.
    url: str = ""
    #: Whether all that changes something is refused.
    read_only: bool = False

    @property
    def base(self) -> str:
        """The path that its pages lie below; empty: none."""
        return urlsplit(self.url).path

    @property
    def origin(self) -> str:
        """The origin that its pages have behind a proxy, as browsers write it; empty: that of its own address.

        >>> Access(url="https://Example.org:443/jobs").origin
        'https://example.org'
        """
        parts = urlsplit(self.url)
        usual = ":443" if parts.scheme == "https" else ":80"
        return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}".lower() if self.url else ""

    @classmethod
    def at(
        cls, host: str, *, require_token: bool = False, hosts: tuple[str, ...] = (), url: str = "",
        read_only: bool = False,
    ) -> Access:  # fmt: skip
        """Return the access of a service that listens at an address. Raises ConfigError.

        >>> Access.at("127.0.0.1").required, Access.at("0.0.0.0").required
        (False, True)
        """
        required = require_token or not is_loopback(host)
        outer = urlsplit(url).hostname or ""
        names = (*hosts, outer) if outer and not is_loopback(outer) else hosts
        if names and not required:
            key = "hosts names" if hosts else "url has"
            fix = f"set service.require_token = true, or leave service.{key.split()[0]} out"
            raise ConfigError(f"service.{key} {names[0]!r}, but on {host} no token is asked for: {fix}")
        known = frozenset(name.lower() for name in names) if hosts or is_loopback(host) else None
        return cls(required, known, url, read_only)

    def answers_to(self, host: str) -> bool:
        """Whether requests to a name or an address are answered; an empty one is none.

        >>> Access().answers_to("localhost"), Access().answers_to("evil.example")
        (True, False)
        """
        return host != "" and (self.hosts is None or host in self.hosts or is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("localhost.evil.example")
    (True, True, False)
    """
    try:
        return host == LOCALHOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
