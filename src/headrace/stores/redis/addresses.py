"""Addresses of Redis stores: one server, a service behind sentinels, or a cluster."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headrace.model.errors import ConfigError

PORT, SENTINEL_PORT = 6379, 26379
#: The settings that hold an address, as errors name them.
STORE_URL, LIMITER_URL = "queue.url (HEADRACE_URL)", "limits.url (HEADRACE_LIMITS_URL)"
#: Schemes by what they reach, and whether the way there is encrypted.
SCHEMES = {
    "redis": ("server", False), "rediss": ("server", True), "valkey": ("server", False), "valkeys": ("server", True),
    "unix": ("server", False), "redis+unix": ("server", False),
    "redis+sentinel": ("sentinel", False), "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False), "rediss+cluster": ("cluster", True),
}  # fmt: skip
#: What may follow the question mark.
_OPTIONS = (
    "db", "username", "password", "sentinel_username", "sentinel_password", "ssl_ca_certs", "ssl_certfile",
    "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname",
)  # fmt: skip


class Kind(StrEnum):
    """What an address leads to."""

    SERVER = "server"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Node:
    """One process to connect to: a host and port, or the path of a unix socket."""

    host: str = "localhost"
    port: int = PORT
    path: str | None = None

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Login:
    """Who we are; without a password nothing is said."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and how to get in. `nodes` are the servers, sentinels or cluster nodes named."""

    kind: Kind
    nodes: tuple[Node, ...]
    db: int = 0
    service: str = ""
    login: Login = Login()
    sentinel_login: Login = Login()
    #: for each connection; None: not encrypted
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)
    #: where it was given, for errors
    setting: str = STORE_URL

    @property
    def shown(self) -> str:
        """The address without its secrets."""
        nodes = ",".join(map(str, self.nodes))
        return f"{self.service} behind {nodes}" if self.service else nodes


class _MistakeError(Exception):
    """A URL breaks a rule: what the error says behind the name of the setting."""


def parse_address(url: str, *, setting: str = STORE_URL) -> Address:
    """Read the URL of a Redis server that stands in `setting`.

    Raises ConfigError, which never repeats the URL: a password may stand in it.

    >>> parse_address("redis+sentinel://a,b:26380/jobs?db=2").shown
    'jobs behind a:26379,b:26380'
    >>> parse_address("unix:///run/redis.sock?db=1").nodes[0].path
    '/run/redis.sock'
    """
    try:
        return _parse(url, setting)
    except _MistakeError as mistake:
        raise ConfigError(f"{setting} {mistake}") from None


def _parse(url: str, setting: str) -> Address:
    try:
        parts = urlsplit(url)
        _check_encoded(parts)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _MistakeError(
            f"cannot be read as an address such as redis://HOST:PORT/DB; it must have {_ENCODED}"
        ) from None
    if parts.scheme not in SCHEMES:
        raise _wrong("must begin with one of " + ", ".join(f"{name}://" for name in SCHEMES), f"{parts.scheme}://…")
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise _wrong(f"must have no other options than {', '.join(_OPTIONS)}", ", ".join(unknown))
    kind, encrypted = SCHEMES[parts.scheme]
    in_vain = [name for name in options if name.startswith("ssl_")]
    if in_vain and not encrypted:
        raise _wrong("must have a scheme with TLS, such as rediss://, beside options for TLS", ", ".join(in_vain))
    return Address(
        kind=Kind(kind),
        nodes=_nodes(parts, SENTINEL_PORT if kind == Kind.SENTINEL else PORT),
        db=_database(parts, options, Kind(kind)),
        service=_service(parts) if kind == Kind.SENTINEL else "",
        login=_login(parts, options),
        sentinel_login=Login(options.get("sentinel_username"), options.get("sentinel_password")),
        tls=(lambda: _context(options, setting)) if encrypted else None,
        setting=setting,
    )


def _wrong(rule: str, value: str) -> _MistakeError:
    return _MistakeError(f"{rule}, got {value}")


#: What reads as the end of a host, of a path or of options where it stands as it is.
_ENCODED = "/ ? # @ [ ] : % of user and password percent-encoded, as %2F %3F %23 %40 %5B %5D %3A %25"


def _check_encoded(parts: SplitResult) -> None:
    """Refuse what a user or password seems to have broken into pieces, before any of them is taken for a host."""
    options = [pair for pair in parts.query.split("&") if not pair.partition("=")[0].endswith(("password", "username"))]
    behind = [parts.path] if parts.netloc else []
    if parts.fragment or any("@" in piece for piece in [*behind, *options]):
        raise _wrong(f"must have {_ENCODED}", "one of them as it is")


def _nodes(parts: SplitResult, port: int) -> tuple[Node, ...]:
    if "unix" in parts.scheme:
        if not parts.path:
            raise _wrong("must name a socket, as unix:///run/redis/redis.sock", "no path")
        return (Node(path=unquote(parts.path)),)
    hosts = parts.netloc.rpartition("@")[2]
    return tuple(_node(text, port) for text in hosts.split(",")) if hosts else (Node(port=port),)


def _node(text: str, default: int) -> Node:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):  # no port, or an address in brackets
        host, port = text, str(default)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise _wrong("must name ports from 1 to 65535, as HOST:PORT", "another one")
    return Node(host.strip("[]") or "localhost", int(port))


def _database(parts: SplitResult, options: dict[str, str], kind: Kind) -> int:
    path = parts.path.strip("/")
    text = options.get("db") or (path if kind is not Kind.SENTINEL and "unix" not in parts.scheme else "") or "0"
    if not text.isascii() or not text.isdigit():
        raise _wrong("must name a database by its number, as /0 or ?db=0", repr(text[:20]))
    if kind is Kind.CLUSTER and int(text):
        raise _wrong("must name database 0 or none: a cluster has no other", text)
    return int(text)


def _service(parts: SplitResult) -> str:
    service = unquote(parts.path.strip("/"))
    if not service:
        raise _wrong("must name the service behind the sentinels, as redis+sentinel://HOST:26379/SERVICE", "none")
    return service


def _login(parts: SplitResult, options: dict[str, str]) -> Login:
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    return Login(options.get("username") or unquote(user) or None, options.get("password") or unquote(password) or None)


def _context(options: dict[str, str], setting: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if options.get("ssl_certfile"):
            context.load_cert_chain(Path(options["ssl_certfile"]), options.get("ssl_keyfile"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{setting} names certificates that cannot be read ({error})") from None
    if options.get("ssl_check_hostname", "").lower() in ("false", "0", "no"):
        context.check_hostname = False
    if options.get("ssl_cert_reqs", "").lower() == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
