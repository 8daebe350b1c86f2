"""The address of a service, and the token that opens it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from headrace import ConfigError
from headrace.model.api_token import is_token

#: Has the token itself, where no file is named.
TOKEN_VARIABLE = "HEADRACE_TOKEN"  # noqa: S105 - the name of a variable
_SHAPE = "must be the address of a service such as http://127.0.0.1:8400"


def parse_address(url: str) -> str:
    """Return the address of a service without a slash at its end. Raises ConfigError.

    >>> parse_address("http://127.0.0.1:8400/")
    'http://127.0.0.1:8400'
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(f"--url {_SHAPE}, got {url[:80]!r}") from None
    if parts.username is not None or parts.password is not None:
        # Never with the value: a password stands in it.
        raise ConfigError(f"--url must have no user and no password: give a token, by --token-file or {TOKEN_VARIABLE}")
    if not fits or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigError(f"--url {_SHAPE}, got {url[:80]!r}")
    return url.rstrip("/")


def read_token(file: Path | None) -> str | None:
    """Return the token in a file, else that of the environment, if any. Raises ConfigError, never with the token."""
    if file is None:
        text, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
        if not text:
            return None
    else:
        text, where = _read(file), f"--token-file {file}"
    token = text.strip()
    if not is_token(token):
        rule = "must hold an API token and nothing else, as `headrace token create` wrote it"
        raise ConfigError(f"{where} {rule}; what it holds is none, or was mistyped")
    return token


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.read(1_000)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"--token-file must be a file that can be read, got {file} ({why})") from None
