"""Templates and documents that are named over the service: files of two folders, and nothing else of the machine.

A document named so has the id `file:NAME`. It travels in the job in place of the id of its content, so that a request
reads no document; the worker looks the name up once more, in its own `[papers] documents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace import InvalidInputError
from headrace.apps.papers.template import Template, parse_template
from headrace.apps.papers.workspace import Source

FILE = "file:"
#: Bytes of a name; the payload of a job has it twice.
MOST_NAME = 200
TEMPLATE_BYTES = 1 << 20
_NAME_RULE = "must be the name of a file in the folder, without / and \\, control characters or a dot at its beginning"


def check_file(folder: Path, name: str, field: str) -> Path:
    """Return the path of a file in a folder. Raises InvalidInputError naming field and rule."""
    plain = name.isprintable() and not any(sign in name for sign in "/\\") and not name.startswith((".", "~$"))
    if not plain or not 1 <= len(name.encode("utf-8", "replace")) <= MOST_NAME:
        raise InvalidInputError(field, f"{_NAME_RULE}, of at most {MOST_NAME} bytes", name)
    path = folder / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise InvalidInputError(field, "must be the name of a file that is there", name) from None
    if not real.is_relative_to(folder.resolve()):
        raise InvalidInputError(field, "must not be a link that leads out of the folder: copy the file", name)
    if not real.is_file():
        raise InvalidInputError(field, "must be the name of a regular file", name)
    return real


def find_template(folder: Path, template_id: str) -> Template:
    """Return a template by the name of its file; `trial` also means `trial.yaml`.

    Raises InvalidInputError, TemplateError.
    """
    name = template_id if template_id.endswith((".yaml", ".yml")) else f"{template_id}.yaml"
    path = check_file(folder, name, "template_id")
    with path.open("rb") as file:
        content = file.read(TEMPLATE_BYTES + 1)
    if len(content) > TEMPLATE_BYTES:
        raise InvalidInputError("template_id", f"must name a file of at most {TEMPLATE_BYTES >> 10} KiB", name)
    try:
        return parse_template(content.decode(), name)
    except UnicodeDecodeError:
        raise InvalidInputError("template_id", "must name a file in UTF-8", name) from None


def check_documents(folder: Path, names: Sequence[str], field: str) -> list[str]:
    """Return the ids of documents, each checked. Raises InvalidInputError naming the first that is wrong."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        place = f"{field}[{index}]"
        if name in seen:
            raise InvalidInputError(place, "must not be named before: name each document once", name)
        seen.add(name)
        check_file(folder, name, place)
    return [FILE + name for name in names]


def name_of_ref(ref: str, field: str) -> str:
    """Return the name that a reference means. Raises InvalidInputError for one that no worker could read.

    >>> name_of_ref("file:trial-7.pdf", "refs[0]"), name_of_ref("trial-7.pdf", "refs[0]")
    ('trial-7.pdf', 'trial-7.pdf')
    """
    scheme, found, _ = ref.partition("://")
    if found:
        rule = "must be a file of [papers] documents, as trial.pdf or file:trial.pdf: copy what lies elsewhere there"
        raise InvalidInputError(field, rule, f"{scheme[:20]}://…")
    return name_of(ref)


def name_of(document_id: str) -> str:
    """Return the name that a document was submitted by.

    >>> name_of("file:trial-7.pdf")
    'trial-7.pdf'
    """
    return document_id.removeprefix(FILE)


def source_of(folder: Path | None, document_id: str) -> Source:
    """Return where a named document lies on this machine. Raises InvalidInputError."""
    name = name_of(document_id)
    if folder is None:
        raise InvalidInputError("[papers] documents", "must name the folder of the documents, for workers too", None)
    return Source(str(check_file(folder, name, "document")), name)
