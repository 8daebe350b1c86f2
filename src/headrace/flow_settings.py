"""`[flows]`: what JSON flows may reach, which files are theirs, and the secrets that they name."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.target_list import TargetList
from headrace.model.targets import TargetRules
from headrace.nodes.services import Credential

KINDS = ("header", "basic", "bearer", "query")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """`[flows.credentials."NAME"]`: a secret that flows name and never hold; NAME is any text."""

    #: where it is sent: "header" (one of any name), "basic" (user and password), "bearer" (a token) or "query"
    kind: str = ""
    #: with "header" the name of the header, with "query" that of the parameter
    name: str = ""
    #: with "basic" the user
    user: str = ""
    #: the secret itself; better is `secret_env`, which keeps it out of the file
    secret: str = field(default="", repr=False)
    #: name of the environment variable that holds the secret, looked up when a flow uses it
    secret_env: str = ""


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """`[flows]`: what JSON flows may reach and use."""

    #: targets beyond the public web that requests may go to: "host", "host:port", "*.suffix", "10.0.0.0/8" or
    #: "10.0.0.0/8:8080"; in the environment with commas between
    allow_targets: tuple[str, ...] = ()
    #: folder of the files that flows may read and write; empty: `flow-files` in `directory`
    files: Path | None = None
    #: values of `$vars`
    vars: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: secrets by their names
    credentials: Mapping[str, CredentialSettings] = field(default_factory=dict)

    @property
    def targets(self) -> TargetRules:
        """Return where requests may go. Raises InvalidInputError."""
        return TargetRules(TargetList.parse(self.allow_targets, field="flows.allow_targets"))

    def files_below(self, directory: Path) -> Path:
        """Return the folder of the files that flows may use; `directory` is that of all settings.

        >>> FlowSettings().files_below(Path("data")).as_posix()
        'data/flow-files'
        """
        return directory / "flow-files" if self.files is None else self.files

    def credential(self, name: str, environ: Mapping[str, str] | None = None) -> Credential:
        """Return a secret with what is sent around it. Raises ConfigError naming where to write it.

        >>> FlowSettings(credentials={"My API": CredentialSettings("bearer", secret="x")}).credential("My API").kind
        'bearer'
        """
        table = self.credentials.get(name)
        if table is None:
            near = get_close_matches(name, self.credentials, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            fix = f"write {_section(name)} with kind and secret_env into headrace.toml"
            raise ConfigError(f"there is no credential {name!r}{hint}: {fix}")
        secret = table.secret
        if table.secret_env:
            secret = (os.environ if environ is None else environ).get(table.secret_env, "")
            rule = f"names the environment variable {table.secret_env}, which is not set: set it"
            _require(bool(secret), name, "secret_env", rule)
        return Credential(table.kind, table.name, table.user, secret)


def check_flows(flows: FlowSettings) -> None:
    """Check the rules of `[flows]`. Raises ConfigError, never with a secret in it."""
    try:
        _ = flows.targets
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None
    for name, value in flows.vars.items():
        _check_value(f"flows.vars.{name}", value)
    for name, credential in flows.credentials.items():
        _check_credential(name, credential)


def _check_value(where: str, value: Any) -> None:
    """Check that a value can stand in JSON, as those of expressions do."""
    if isinstance(value, datetime.date | datetime.time):
        raise ConfigError(f"{where} must be text, number, true or false, a list or a table: put the date into quotes")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where} must be a finite number, got {value}")
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        _check_value(f"{where}.{key}", item)


def _check_credential(name: str, table: CredentialSettings) -> None:
    if not name.strip() or not name.isprintable() or len(name) > 200:
        raise ConfigError(f"the name of {_section(name)} must be 1 to 200 printable characters")
    words = ", ".join(f'"{kind}"' for kind in KINDS)
    _require(table.kind in KINDS, name, "kind", f"must be one of {words}, got {table.kind!r}")
    named = table.kind in ("header", "query")
    what = "header" if table.kind == "header" else "parameter"
    _require(not named or bool(table.name), name, "name", f"must name the {what} that the secret is sent in")
    _require(named or not table.name, name, "name", f'goes with kind = "header" or "query", not "{table.kind}"')
    fits = table.kind != "header" or bool(_HEADER.fullmatch(table.name))
    _require(fits, name, "name", f"must be a header's name, of letters, digits and dashes, got {table.name!r}")
    basic = table.kind == "basic"
    _require(not basic or bool(table.user), name, "user", 'must be given with kind = "basic"')
    _require(basic or not table.user, name, "user", f'goes with kind = "basic", not "{table.kind}"')
    one = bool(table.secret) != bool(table.secret_env)
    _require(one, name, "secret_env", "must name an environment variable, or secret be given: exactly one of both")
    _check_variable(name, table.secret_env)


def _check_variable(name: str, variable: str) -> None:
    fits = not variable or bool(_VARIABLE.fullmatch(variable))
    # What is no name of a variable may be the secret, put into the wrong key.
    _require(fits, name, "secret_env", "must be the name of an environment variable, of letters, digits and _")
    rule = f"must not begin with HEADRACE_, which is for settings: name it otherwise, got {variable}"
    _require(not variable.startswith("HEADRACE_"), name, "secret_env", rule)


def _require(holds: bool, name: str, key: str, rule: str) -> None:
    if not holds:
        raise ConfigError(f"{_section(name)[1:-1]}.{key} {rule}")


def _section(name: str) -> str:
    return f"[flows.credentials.{json.dumps(name, ensure_ascii=False)}]"
