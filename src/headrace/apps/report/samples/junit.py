"""junit.xml: what runners of Java and Python tests write."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from headrace.apps.report.samples.drawing import Draw
from headrace.apps.report.samples.subjects import SUBJECTS
from headrace.apps.report.samples.truth import Known, Truth

_EACH = 10
_ENDINGS = {"passed": 70, "failure": 16, "error": 6, "skipped": 8}
_STATUS = {"passed": "passed", "failure": "failed", "error": "failed", "skipped": "skipped"}
#: What a file of this kind cannot tell.
WITHOUT = ("priority", "severity", "executor", "expected")


def write_junit(path: Path, seed: int = 3) -> Truth:
    """Write the file: one suite for each module. Return what is in it."""
    draw, truth = Draw(seed), Truth()
    suites = []
    for at, subject in enumerate(SUBJECTS):
        cases = [_case(draw, at, number, truth) for number in range(1, _EACH + 1)]
        stamp = draw.moment().isoformat()
        head = f'  <testsuite name="{subject.en}" tests="{_EACH}" hostname="ci-{at}" timestamp="{stamp}">'
        suites.append("\n".join([head, *cases, "  </testsuite>"]))
    whole = "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", *suites, "</testsuites>", ""])
    path.write_text(whole, encoding="utf-8")
    return truth


def _case(draw: Draw, at: int, number: int, truth: Truth) -> str:
    subject = SUBJECTS[at]
    point = draw.one(subject.points_en)
    name = f"{point.lower().replace(' ', '_').replace('-', '_')}_{number}"
    is_java = at % 2 == 0
    package = subject.en.lower()
    where = f"com.shop.{package}.{subject.en}Test" if is_java else f"tests.{package}.test_{package}"
    ending = draw.weighted(_ENDINGS)
    known = Known(_STATUS[ending], subject.en)
    inner = _ending(draw, at, ending)
    truth.cases.append(known)
    time = f"{draw.number(1, 9_000) / 1_000:.3f}"
    return f'    <testcase classname="{where}" name={quoteattr(name)} time="{time}">{inner}</testcase>'


def _ending(draw: Draw, at: int, ending: str) -> str:
    """Return what stands within a case: nothing where it passed."""
    if ending == "passed":
        return ""
    if ending == "skipped":
        return '<skipped message="not on this platform"/>'
    failure, filling = draw.failure(at), draw.filling()
    text = (failure.error or f"AssertionError: {failure.en}").format(**filling)
    kind, _, message = text.partition("\n")[0].partition(": ")
    out = f"<system-out>{escape('build ' + filling['build'])}</system-out>"
    return f"<{ending} type={quoteattr(kind)} message={quoteattr(message)}>{escape(text)}</{ending}>{out}"
