"""One test case of JUnit XML as a case."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.apps.report.data.cases import Case, Source, Status
from headrace.apps.report.ingest.cells import text_of
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook, Place
from headrace.apps.report.ingest.limits import MAX_TEXT
from headrace.apps.report.ingest.values.dates import when_of
from headrace.apps.report.ingest.values.durations import seconds_of

#: Names that runners give to every suite: they tell nothing.
_GENERIC = frozenset(("", "pytest", "junit", "nunit", "jest tests", "test", "tests", "root suite", "default"))
#: Characters of the output of a case that are kept: its end, where failures show.
_OUTPUT = 4_000


@dataclass
class JUnitCase:
    """What a file says of one case: attributes of its own and of the suites around it, how it ended, texts."""

    attributes: dict[str, str]
    suites: list[dict[str, str]]
    endings: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """How it ended; a failure counts before anything else that it may say."""
        kinds = {kind for kind, _ in self.endings}
        if kinds & {"failure", "error"}:
            return Status.FAILED
        is_left_out = "skipped" in kinds or self.attributes.get("status") in ("notrun", "skipped", "disabled")
        return Status.SKIPPED if is_left_out else Status.PASSED

    def of_suite(self, name: str) -> str:
        """Return an attribute of the innermost suite that has it."""
        return next((suite[name] for suite in reversed(self.suites) if suite.get(name)), "")

    def text(self, *kinds: str) -> str:
        """Return the texts of some kinds."""
        return "\n".join(text for kind, text in self.texts if kind in kinds and text.strip())


def case_of(one: JUnitCase, number: int, sheet: str, ids: Ids, book: IssueBook) -> Case:
    """Return the n-th test case of a file; what is wrong with it is put into the book."""
    class_name, name = (one.attributes.get(key, "").strip() for key in ("classname", "name"))
    suite = one.of_suite("name").strip()
    module = class_name if suite.lower() in _GENERIC else suite
    place = Place(sheet, number)
    messages = [attributes.get("message", "") for kind, attributes in one.endings if kind != "skipped"]
    output = one.text("system-out", "system-err").strip()[-_OUTPUT:]
    extra = {"classname": class_name, "suite": suite, "output": output}
    return Case(
        case_id=ids.given(".".join(part for part in (class_name, name) if part), place._replace(column="name")),
        title=text_of(name),
        module=text_of(module),
        status=one.status,
        actual=text_of("\n".join(message for message in messages if message)),
        error=_error(one, place, book),
        remark=text_of("\n".join(given.get("message", "") for kind, given in one.endings if kind == "skipped")),
        executed_at=_when(one, place, book),
        duration_seconds=_seconds(one, place, book),
        environment=text_of(one.of_suite("hostname")),
        source=Source(sheet=sheet, row=number),
        extra={key: text_of(value) for key, value in extra.items() if value},
    )


def _error(one: JUnitCase, place: Place, book: IssueBook) -> str:
    """Return type and message of a failure, and its trace, which often begins with both."""
    trace = one.text("failure", "error").strip()
    heads = [
        ": ".join(part for part in (given.get("type", ""), given.get("message", "")) if part)
        for kind, given in one.endings
        if kind != "skipped"
    ]
    whole = "\n".join(part for part in (*(head for head in heads if head not in trace), trace) if part)
    if len(whole) > MAX_TEXT:
        book.add("text_cut", place._replace(column="failure"), whole)
    return text_of(whole)


def _when(one: JUnitCase, place: Place, book: IssueBook) -> str | None:
    given = one.attributes.get("timestamp") or one.of_suite("timestamp")
    found = when_of(given, day_first=False)
    if found is None and given:
        book.add("bad_date", place._replace(column="timestamp"), given)
    return found.text if found else None


def _seconds(one: JUnitCase, place: Place, book: IssueBook) -> float | None:
    given = one.attributes.get("time", "")
    found = seconds_of(given)
    if found is None and given:
        book.add("bad_duration", place._replace(column="time"), given)
    return found
