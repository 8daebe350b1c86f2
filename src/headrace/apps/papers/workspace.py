"""What jobs refer to instead of carrying: the template and the places of documents, kept in small files.

    <directory>/papers/<run id>/template.json
    <directory>/papers/<run id>/parameters.json                 {"dual": …}
    <directory>/papers/<run id>/estimate.json                   where one was asked for
    <directory>/papers/<run id>/output.json                     {"path": …}, where a command wrote the results last
    <directory>/papers/<run id>/review-log.jsonl                decisions of a run that has no such folder
    <directory>/papers/<run id>/documents/<document id>.json    {"path": …, "name": …}

What is written once is written under a temporary name and renamed: two commands that start together write the same.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.apps.papers.documents import FoundDocument
from headrace.apps.papers.errors import MissingSourceError
from headrace.apps.papers.estimate import Estimate
from headrace.apps.papers.template import Template


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document lies and what people call it."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """What beside the template decides what a run asks."""

    #: `prompts` or the name of a configured model; None: every question is asked once.
    dual: str | None = None


class Workspace:
    """The files of all runs under one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def save(
        self, run_id: str, template: Template, documents: tuple[FoundDocument, ...], *, parameters: Parameters
    ) -> None:
        """Note template, parameters and documents for the jobs of a run."""
        folder = self._root / run_id / "documents"
        folder.mkdir(parents=True, exist_ok=True)
        write_once(self._root / run_id / "template.json", template.model_dump_json())
        write_once(self._root / run_id / "parameters.json", json.dumps(asdict(parameters)))
        for document in documents:
            source = Source(str(document.path.resolve()), document.name)
            write_once(folder / f"{document.document_id}.json", json.dumps(asdict(source)), replace=True)

    def template(self, run_id: str) -> Template:
        """Return the template of a run. Raises MissingSourceError."""
        return Template.model_validate_json(self._read(Path(run_id, "template.json")))

    def parameters(self, run_id: str) -> Parameters:
        """Return the parameters of a run; those of a run that an earlier version noted are the defaults."""
        try:
            text = (self._root / run_id / "parameters.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return Parameters()
        return Parameters(**json.loads(text))

    def save_estimate(self, run_id: str, estimate: Estimate) -> None:
        """Note what a run was estimated to take; a later estimate replaces it."""
        (self._root / run_id).mkdir(parents=True, exist_ok=True)
        write_once(self._root / run_id / "estimate.json", estimate.encode(), replace=True)

    def estimate(self, run_id: str) -> Estimate | None:
        """Return what a run was estimated to take, if it was, by this version."""
        try:
            return Estimate.decode((self._root / run_id / "estimate.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, LookupError, TypeError, ValueError):
            return None

    def note_output(self, run_id: str, out: Path) -> None:
        """Note the folder that a command writes the results of a run into."""
        write_once(self.folder(run_id) / "output.json", json.dumps({"path": str(out.resolve())}), replace=True)

    def folder(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self._root / run_id

    def review_folder(self, run_id: str) -> Path:
        """Return where what people decide of a run is kept: with its results, or, where there are none, in its folder.

        Of a run whose results lie on another machine, or went, the decisions wait in its folder for the next command.
        """
        try:
            out = Path(json.loads((self.folder(run_id) / "output.json").read_text(encoding="utf-8"))["path"])
        except (OSError, LookupError, TypeError, ValueError):
            return self.folder(run_id)
        return out if out.is_dir() else self.folder(run_id)

    def source(self, run_id: str, document_id: str) -> Source:
        """Return where a document lies. Raises MissingSourceError."""
        return Source(**json.loads(self._read(Path(run_id, "documents", f"{document_id}.json"))))

    def _read(self, name: Path) -> str:
        try:
            return (self._root / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise MissingSourceError(
                f"{self._root / name} does not exist on this machine; run workers of papers where the command was "
                "started, with the same HEADRACE_DIRECTORY"
            ) from None


def write_once(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file whole or not at all; an existing one is kept unless `replace`."""
    if path.exists() and not replace:
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(path)
