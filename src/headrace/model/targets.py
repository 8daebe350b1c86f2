"""Where requests may go that users write the URLs of: the public web, and what somebody allowed.

First the form of a URL is checked (`TargetRules.parse`), which needs no network; then, each time a connection is made,
every address that its host has (`TargetRules.check`). A form that programs read in different ways is refused, so that
what is checked is what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import quote, urljoin

from headrace.model.errors import InvalidInputError
from headrace.model.target_list import TargetList, is_host_name, port_of
from headrace.model.target_ranges import Address, why_not_public

#: Ports of well-known services that are not HTTP: a request could be read there as commands.
NOT_HTTP = frozenset(
    {
        *(7, 9, 13, 17, 19, 20, 21, 22, 23, 25, 37, 43, 53, 69, 79, 109, 110, 111, 113, 119, 123, 135, 137, 138, 139),
        *(143, 161, 179, 389, 445, 465, 512, 513, 514, 515, 548, 554, 563, 587, 636, 873, 989, 990, 993, 995, 1433),
        *(1521, 1723, 1883, 2049, 2181, 3306, 3389, 5060, 5061, 5432, 5672, 5900, 6000, 6379, 6667, 9042, 9092, 11211),
        *(27017, 27018, 27019),
    }
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 16_384
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_AUTHORITY = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::(.*))?")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
#: What stands in a path or query as it is; all else is percent-encoded.
_PLAIN = "/%:@!$&'()*+,;=~?[]|^"


class ForbiddenTargetError(InvalidInputError):
    """Requests must not go there. Use an address of the public web, or have this one allowed in the settings."""

    code = "forbidden_target"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    scheme: str
    #: In lower case, without brackets and without a dot at its end.
    host: str
    port: int
    #: Path and query; not shown, secrets may stand there.
    path: str = field(default="/", repr=False)

    @property
    def address(self) -> Address | None:
        """The host, when it is an address and not a name."""
        return None if is_host_name(self.host) else ip_address(self.host)

    @property
    def origin(self) -> tuple[str, str, int]:
        """What secrets are kept to: scheme, host and port."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and, unless it is the usual one, port: the value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def site(self) -> str:
        """The URL without path and query, where secrets may stand.

        >>> Target("https", "example.com", 8443, "/?key=1").site
        'https://example.com:8443'
        """
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The whole URL."""
        return self.site + self.path

    def with_query(self, query: str) -> Target:
        """Return it with more in its query, which is encoded already."""
        if not query:
            return self
        return Target(*self.origin, f"{self.path}{'&' if '?' in self.path else '?'}{query}")

    def join(self, location: str) -> str:
        """Return the URL that a `Location` of its answer means; not checked yet."""
        try:
            return urljoin(self.url, location)
        except ValueError:
            return location


@dataclass(frozen=True, slots=True)
class TargetRules:
    """What is allowed beyond the public web, and where that is written."""

    allowed: TargetList = field(default_factory=TargetList)
    #: Where people write what is allowed, for errors.
    setting: str = "[flows] allow_targets"

    def parse(self, url: str, *, field: str = "url") -> Target:
        """Return what a URL means, its form and port checked, and its host where that is an address.

        Raises ForbiddenTargetError.

        >>> TargetRules().parse("https://Example.com/a b?q=1#top").url
        'https://example.com/a%20b?q=1'
        """
        target = _parsed(url, field)
        local = target.host == "localhost" or target.host.endswith(".localhost")
        # It means this machine everywhere, asked or not.
        address = IPv4Address("127.0.0.1") if local else target.address
        if target.port in NOT_HTTP and not self.allowed.names_port(target.host, address, target.port):
            rule = f"must not lead to port {target.port}, which is not for HTTP: {self._fix(target)}"
            raise ForbiddenTargetError(field, rule, target.site)
        if address is not None:
            self._check(target, address, field)
        return target

    def check(self, target: Target, addresses: Iterable[str], *, field: str = "url") -> list[str]:
        """Return all addresses that a host has, each of them checked. Raises ForbiddenTargetError for one that is not.

        One wrong among right ones refuses them all: it stands there for a purpose.
        """
        found = list(addresses)
        for text in found:
            self._check(target, ip_address(text), field)
        return found

    def _check(self, target: Target, address: Address, field: str) -> None:
        why = why_not_public(address)
        if why is not None and not self.allowed.opens(target.host, address, target.port):
            raise ForbiddenTargetError(field, f"must not lead to {why}: {self._fix(target)}", target.site)

    def _fix(self, target: Target) -> str:
        host = f"[{target.host}]" if ":" in target.host else target.host
        return f'use another one, or add "{host}:{target.port}" to {self.setting}'


def _parsed(url: str, field: str) -> Target:
    if len(url) > _LONGEST:
        raise ForbiddenTargetError(field, f"must have at most {_LONGEST} characters", len(url))
    if _HIDDEN.search(url):
        raise ForbiddenTargetError(field, "must have no control characters and no \\: encode them", "one with some")
    parts = _URL.fullmatch(url)
    scheme = parts[1].lower() if parts else ""
    if parts is None or scheme not in _DEFAULT_PORTS:
        # Never with what follows: secrets may stand there.
        raise ForbiddenTargetError(field, "must begin with http:// or https://", f"{scheme}://…" if scheme else "other")
    host, port = _place(scheme, parts[2], field)
    path, query = quote(parts[3] or "/", safe=_PLAIN), parts[4]
    return Target(scheme, host, port, path if query is None else f"{path}?{quote(query, safe=_PLAIN)}")


def _place(scheme: str, authority: str, field: str) -> tuple[str, int]:
    """Return host and port."""
    if "@" in authority:
        rule = "must have neither user nor password before the host: use a credential"
        raise ForbiddenTargetError(field, rule, f"{scheme}://…@{authority.rpartition('@')[2]}")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise ForbiddenTargetError(field, "must have a host, and perhaps a port", f"{scheme}://{authority}")
    port = port_of(parts[3]) if parts[3] else _DEFAULT_PORTS[scheme]
    if port is None:
        raise ForbiddenTargetError(field, "must have a port from 1 to 65535", f"{scheme}://{authority}")
    if parts[1] is not None:
        return _six(parts[1], field), port
    return _name(parts[2], field), port


def _six(text: str, field: str) -> str:
    try:
        if "%" not in text:
            return str(IPv6Address(text))
    except ValueError:
        pass
    raise ForbiddenTargetError(field, "must have an IPv6 address in its brackets, without a zone", f"[{text}]")


def _name(text: str, field: str) -> str:
    host = text.lower().removesuffix(".")
    # Some letters beyond ASCII have lower forms within it.
    if text.isascii() and is_host_name(host):
        return host
    try:
        return str(IPv4Address(host))
    except ValueError:
        rule = (
            "must have a host such as api.example.com (its xn-- form if it is not ASCII) or an address such as 8.8.8.8"
        )
        raise ForbiddenTargetError(field, rule, text) from None
