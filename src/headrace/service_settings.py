"""`[service]`: where the HTTP service listens, and whom it answers."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace.model.errors import ConfigError

LOCALHOST = "localhost"
#: Each stream holds a connection, and a process has 4,096 of them.
MOST_STREAMS = 4_000
#: What `audit` may say.
OPERATE, ALL, OFF = AUDITS = ("operate", "all", "off")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?){0,20}")

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`[service]`: the HTTP service of `headrace serve`."""

    #: an address of this machine, or localhost; one that others reach needs a token of `headrace token create`
    host: str = "127.0.0.1"
    #: 0 takes any free one
    port: int = 8400
    #: ask for a token on this machine too; beyond it one is always asked for
    require_token: bool = False
    #: names by which others reach it, such as "jobs.example.org"; requests to other names are refused. Empty: those of
    #: this machine alone, or any name where others reach its address. In the environment with commas between
    hosts: tuple[str, ...] = ()
    #: streams of events that one process sends at once; whoever comes beyond them is answered 503 and tries again
    most_streams: int = 1_000
    #: where people find it behind a proxy, such as "https://example.org/jobs": its pages then lie below that path, and
    #: their cookie is sent over https alone. The proxy may leave the path or cut it off, but has to leave one that
    #: begins with the name of a page, such as /jobs
    url: str = ""
    #: refuse everything that changes something, over HTTP and in the pages
    read_only: bool = False
    #: serve the pages of the dashboard too
    dashboard: bool = True
    #: which actions are noted in the audit: "operate", those that need this scope and all of pages, "all", those of
    #: programs that bring work too, or "off"
    audit: str = OPERATE


def check_service(service: ServiceSettings) -> None:
    """Check the rules of `[service]`. Raises ConfigError."""
    check_host(service.host)
    if not 0 <= service.port <= 65_535:
        raise ConfigError(f"service.port must be from 0 to 65535, got {service.port}")
    if not 1 <= service.most_streams <= MOST_STREAMS:
        raise ConfigError(f"service.most_streams must be from 1 to {MOST_STREAMS:,}, got {service.most_streams}")
    if service.url:
        check_url(service.url)
    if service.audit not in AUDITS:
        raise ConfigError(f"service.audit must be {', '.join(AUDITS[:-1])} or {AUDITS[-1]}, got {service.audit!r}")
    for name in service.hosts:
        if not (_NAME.fullmatch(name) or _is_address(name)):
            rule = "must be names or addresses without scheme, port and *, such as jobs.example.org"
            raise ConfigError(f"service.hosts {rule}, got {name!r}")


def check_host(host: str) -> None:
    """Check an address to listen on. Raises ConfigError.

    >>> check_host("0.0.0.0")
    """
    if host != LOCALHOST and not _is_address(host):
        rule = f"must be an address such as 127.0.0.1, 0.0.0.0 or ::, or {LOCALHOST}"
        raise ConfigError(f"service.host {rule}, got {host!r}; names that it answers to are service.hosts")


def check_url(url: str) -> None:
    """Check where people find the service. Raises ConfigError.

    >>> check_url("https://example.org/jobs")
    """
    rule = "must be such as https://example.org/jobs, without query and / at its end"
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
        known = parts.scheme in ("http", "https") and (_NAME.fullmatch(name) or _is_address(name)) and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.username is not None or not _PATH.fullmatch(parts.path) or parts.query or parts.fragment:
        raise ConfigError(f"service.url {rule}, got {url!r}")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
