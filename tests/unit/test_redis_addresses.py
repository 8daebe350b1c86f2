"""Addresses of Redis stores, and what a server's errors become: no secret in any message."""

from __future__ import annotations

import ssl

import pytest

from headrace.cli.checks import shown_url
from headrace.model.errors import ConfigError, NotAllowedError, StorageResetError, StoreUnavailableError
from headrace.stores.redis.addresses import Address, Kind, Login, Node, parse_address
from headrace.stores.redis.faults import NotTakenError, RefusedError, StoreFullError, shown, sort_answer, unreachable
from headrace.stores.redis.primary import slot_of

ADDRESSES = {
    "redis://": Address(Kind.SERVER, (Node(),)),
    "redis://db.example:7000/3": Address(Kind.SERVER, (Node("db.example", 7000),), db=3),
    "redis://[::1]:7000": Address(Kind.SERVER, (Node("::1", 7000),)),
    "redis://[::1]": Address(Kind.SERVER, (Node("::1"),)),
    "valkey://app:p%40ss@db": Address(Kind.SERVER, (Node("db"),), login=Login("app", "p@ss")),
    "redis://:hush@db/0": Address(Kind.SERVER, (Node("db"),), login=Login(None, "hush")),
    "redis://db?username=app&password=hush": Address(Kind.SERVER, (Node("db"),), login=Login("app", "hush")),
    "unix:///run/a%20b.sock?db=2": Address(Kind.SERVER, (Node(path="/run/a b.sock"),), db=2),
    "redis+unix:///run/s": Address(Kind.SERVER, (Node(path="/run/s"),)),
    "redis+sentinel://a,b:26380/jobs?db=1&password=x&sentinel_password=y": Address(
        Kind.SENTINEL, (Node("a", 26379), Node("b", 26380)), db=1, service="jobs",
        login=Login(None, "x"), sentinel_login=Login(None, "y"),
    ),
    "redis+cluster://a:7000,b:7001": Address(Kind.CLUSTER, (Node("a", 7000), Node("b", 7001))),
}  # fmt: skip


@pytest.mark.parametrize("url", list(ADDRESSES))
def test_an_address_is_read(url: str) -> None:
    """Host, port, socket, database, service and who we are, each in its place; what is shown holds no secret."""
    address = parse_address(url)
    assert address == ADDRESSES[url]
    assert not {"hush", "p@ss", "x", "y"} & set(f"{address.shown} {address!r}".replace("'", " ").split())


MISTAKES = {
    "mysql://db": "redis://",
    "redis://db:port": "ports from 1",
    "redis://db:70000": "ports from 1",
    "redis://db/zero": "database by its number",
    "redis://db?hush=1": "other options",
    "redis://db?db": "cannot be read",
    "redis+sentinel://a:26379": "service behind the sentinels",
    "redis+cluster://a:7000/2": "database 0",
    "unix://": "name a socket",
    "redis://[hush": "cannot be read",
    "redis://db?ssl_ca_certs=/ca.pem": "scheme with TLS",
    "redis+sentinel://a/jobs?ssl_cert_reqs=none": "scheme with TLS",
}


@pytest.mark.parametrize("url", list(MISTAKES))
def test_a_wrong_address_is_refused_with_its_rule(url: str) -> None:
    """The rule that is broken is told, and no password."""
    with pytest.raises(ConfigError, match=MISTAKES[url]) as caught:
        parse_address(url.replace("://", "://user:secret@") if "unix" not in url and "[" not in url else url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hush#4711@db",
        "redis://:4711#hush@db",
        "redis://:4711?hush@db",
        "redis://:4711?db=hush@db",
        "redis://:4711/hush@db/0",
        "redis://app:hush]@db",
        "redis+sentinel://:hush/4711@a:26379/jobs",
    ],
)
def test_a_password_that_is_not_encoded_is_told_to_be(url: str) -> None:
    """What ends a host or a path in a URL must be encoded in a password: no piece of it is taken for anything else."""
    with pytest.raises(ConfigError, match="percent-encoded") as caught:
        parse_address(url)
    assert not [piece for piece in ("hush", "4711") if piece in str(caught.value)]
    assert not [piece for piece in ("hush", "4711") if piece in shown_url(url)]


def test_encryption_is_as_asked() -> None:
    """rediss:// checks the server's certificate and name unless that is switched off; a missing file is told."""
    strict, lax = parse_address("rediss://db").tls, parse_address("rediss://db?ssl_cert_reqs=none").tls
    assert strict
    assert lax
    assert (strict().verify_mode, strict().check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (lax().verify_mode, lax().check_hostname) == (ssl.CERT_NONE, False)
    assert parse_address("redis://db").tls is None
    missing = parse_address("rediss+cluster://db?ssl_ca_certs=/nowhere/ca.pem").tls
    assert missing
    with pytest.raises(ConfigError, match="certificates"):
        missing()


@pytest.mark.parametrize(
    ("answer", "kind", "transient"),
    [
        ("READONLY You can't write against a read only replica.", NotTakenError, True),
        ("LOADING server is loading the dataset in memory", NotTakenError, True),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", NotTakenError, True),
        ("CLUSTERDOWN The cluster is down", NotTakenError, True),
        ("ERR max number of clients reached", NotTakenError, True),
        ("MOVED 3999 127.0.0.1:6381", NotTakenError, True),
        ("MISCONF Errors writing to the AOF file: No space left on device", NotTakenError, True),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreFullError, True),
        ("ERR -OOM allow-oom flag is not set on the script", StoreFullError, True),
        ("WRONGPASS invalid username-password pair or user is disabled.", NotAllowedError, False),
        ("NOPERM User app has no permissions to run the 'eval' command", NotAllowedError, False),
        ("NOAUTH Authentication required.", NotAllowedError, False),
        ("ERR ACL failure in script: No permissions to access a key script: on @x:1.", NotAllowedError, False),
        ("STORAGE_RESET the epoch of this namespace is not there", StorageResetError, False),
        ("ERR wrong number of arguments for 'get' command", RefusedError, False),
        ("NOSCRIPT No matching script.", RefusedError, False),
    ],
)
def test_an_error_of_the_server_is_sorted(answer: str, kind: type[Exception], transient: bool) -> None:
    """What may pass is told from what may not, and all of it from what the caller did wrong."""
    error = sort_answer(answer)
    assert type(error) is kind
    assert error.transient is transient


def test_no_secret_is_shown() -> None:
    """What a server repeats of a command that logs in is cut off; an unreachable one is named by its place."""
    assert "hunter2" not in shown("ERR unknown command 'AUTH', with args beginning with: 'app' 'hunter2'")
    assert "hunter2" not in str(sort_answer("ERR wrong HELLO 3 AUTH app hunter2"))
    error = unreachable("db:6379", OSError("refused\nand more"))
    assert isinstance(error, StoreUnavailableError)
    assert "db:6379: refused" in str(error)
    assert "more" not in str(error)


def test_keys_of_a_namespace_share_a_slot() -> None:
    """The hash tag decides, as the cluster's own function does: these are its published values."""
    assert slot_of("123456789") == 12_739
    assert slot_of("{user1000}.following") == slot_of("{user1000}.followers") == 3_443
    assert slot_of("{headrace:nightly}") != slot_of("{headrace}")
