"""What is allowed although it is forbidden: hosts and networks that somebody wrote into the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from headrace.model.errors import InvalidInputError
from headrace.model.target_ranges import Address

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
#: How browsers know that a host is meant as an IPv4 address.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_PORT = re.compile(r"[0-9]{1,5}")
_PLACE = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::(.*))?")
_FORMS = 'must be "host", "host:port", "*.suffix", an address or a network such as "10.0.0.0/8", or one with a port'


def is_host_name(text: str) -> bool:
    """Whether a text is a name of a host in lower case, and none that is read as a number.

    >>> is_host_name("api.example.com"), is_host_name("0x7f.1")
    (True, False)
    """
    return len(text) <= 253 and bool(_NAME.fullmatch(text)) and not _NUMBER.fullmatch(text.rpartition(".")[2])


def port_of(text: str) -> int | None:
    """Return a port that is written in digits; None: it is none.

    >>> port_of("443"), port_of("0"), port_of("65536")
    (443, None, None)
    """
    return int(text) if _PORT.fullmatch(text) and 1 <= int(text) <= 65535 else None


@dataclass(frozen=True, slots=True)
class Allowed:
    """One entry: a name, the names below a suffix, or a network; and perhaps one port of it."""

    host: str | IPv4Network | IPv6Network
    port: int | None = None

    def opens_name(self, name: str) -> bool:
        """Whether it means this name of a host."""
        if not isinstance(self.host, str):
            return False
        return name.endswith(self.host[1:]) if self.host.startswith("*.") else name == self.host

    def opens_address(self, address: Address) -> bool:
        """Whether it means this address."""
        return not isinstance(self.host, str) and address in self.host

    def opens(self, name: str, address: Address | None) -> bool:
        """Whether it means a host, by its name or by an address of it."""
        return self.opens_name(name) or (address is not None and self.opens_address(address))


@dataclass(frozen=True, slots=True)
class TargetList:
    """All entries."""

    entries: tuple[Allowed, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str], *, field: str = "allow_targets") -> TargetList:
        """Return the list that texts write. Raises InvalidInputError naming the entry and the forms.

        >>> TargetList.parse(["localhost:8080", "10.0.0.0/8"]).entries[0]
        Allowed(host='localhost', port=8080)
        """
        return cls(tuple(_entry(text.strip().lower(), field) for text in texts))

    def opens(self, name: str, address: Address | None, port: int) -> bool:
        """Whether a host may be asked at a port, whatever its address is."""
        return any(entry.port in (None, port) and entry.opens(name, address) for entry in self.entries)

    def names_port(self, name: str, address: Address | None, port: int) -> bool:
        """Whether an entry of a host names this very port."""
        return any(entry.port == port and entry.opens(name, address) for entry in self.entries)


def _entry(text: str, field: str) -> Allowed:
    bare = text.count(":") > 1 and "[" not in text  # an IPv6 address, which has no port then
    parts = None if bare else _PLACE.fullmatch(text)
    host, port = (parts[1] or parts[2] or "", parts[3]) if parts else (text, None)
    if port is None or port_of(port) is not None:
        number = port_of(port) if port else None
        if is_host_name(host.removeprefix("*.").removesuffix(".")):
            return Allowed(host.removesuffix("."), number)
        try:
            return Allowed(ip_network(host), number)
        except ValueError:
            pass
    raise InvalidInputError(field, _FORMS, text)
