"""What the files of `deploy/` say, read as their programs read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
SYSTEMD = DEPLOY / "systemd"
#: Variables of a compose file: $$, ${NAME}, ${NAME:-default}, ${NAME:?message}.
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<how>[-?])(?P<rest>[^}]*))?\})")


class MissingVariableError(Exception):
    """A variable that the compose file needs is not there."""


def compose(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the compose file with its variables put in. Raises MissingVariableError."""
    document: dict[str, Any] = put_in(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")), environ)
    return document


def put_in(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a value with variables put into its texts, as compose does it: an empty one is as good as none."""
    if isinstance(value, dict):
        return {name: put_in(one, environ) for name, one in value.items()}
    if isinstance(value, list):
        return [put_in(one, environ) for one in value]
    return _VARIABLE.sub(lambda match: _put_in(match, environ), value) if isinstance(value, str) else value


def _put_in(match: re.Match[str], environ: Mapping[str, str]) -> str:
    if match["name"] is None:
        return "$"
    value = environ.get(match["name"], "")
    if not value and match["how"] == "?":
        raise MissingVariableError(match["name"])
    return value or (match["rest"] or "" if match["how"] == "-" else "")


def example_environment() -> dict[str, str]:
    """Return the variables of `.env.example`, those that are commented out left out."""
    lines = (DEPLOY / ".env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def documents(file: Path) -> list[dict[str, Any]]:
    """Return the documents of a YAML file."""
    return [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one is not None]


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the manifests that a kustomization names, those of the folders it rests on included."""
    [kustomization] = documents(folder / "kustomization.yaml")
    for name in kustomization["resources"]:
        found = (folder / name).resolve()
        yield from manifests(found) if found.is_dir() else documents(found)


def pods(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the pod specifications of a kustomization by the names of what makes them."""
    kinds = ("Deployment", "Job")
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests(folder) if one["kind"] in kinds
    }


def unit(name: str) -> dict[str, list[str]]:
    """Return what a unit of systemd says, by section and key: `Service.ExecStart`."""
    said: dict[str, list[str]] = {}
    section = ""
    for line in (SYSTEMD / name).read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section = match[1]
        elif line and not line.startswith(("#", ";")):
            key, equals, value = line.partition("=")
            assert equals and section, line
            said.setdefault(f"{section}.{key}", []).append(value)
    return said


def seconds(text: str) -> int:
    """Return a duration such as 60s, 60, 1min, 24h or 1d in seconds."""
    number, word = re.fullmatch(r"(\d+)(s|m|min|h|d)?", text.strip()).groups()  # type: ignore[union-attr]
    return int(number) * {"m": 60, "min": 60, "h": 3_600, "d": 86_400}.get(word, 1)
