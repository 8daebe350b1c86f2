"""Reads the file: YAML, or TOML where its name ends so. Plain data only: no aliases, no repeated keys, 256 KiB."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from headrace import ConfigError
from headrace.apps.memory.config.parsing import parse_config
from headrace.apps.memory.config.values import RunConfig

MAX_BYTES = 256 * 1024


def read_config(path: Path) -> RunConfig:
    """Return what a file says. Raises ConfigError naming the file, and the key, the rule and the value.

    >>> read_config(Path(__file__).with_name("ray_task_config.yaml")) == RunConfig()
    True
    """
    return parse_config(_toml(path) if path.suffix == ".toml" else _yaml(path), str(path))


def _toml(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES // 1024} KiB")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}. Name an existing file.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _yaml(path: Path) -> Any:
    try:
        from headrace.apps.papers.yaml_file import read_yaml
    except ImportError:
        raise ConfigError(f"{path}: YAML needs the extra headrace[memory]: pip install 'headrace[memory]'") from None
    return read_yaml(path).data
