"""A small workbook with something for each stage to ask the model, and the answers of a model that is well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xlsxwriter

HEADER = ("Case ID", "Title", "Module", "Priority", "Severity", "Steps", "Expected", "Actual", "Status")
MODULES = ("Cart", "Login", "Payment", "Search")
#: What failing cases of each module say: a cluster each.
ERRORS = {
    "Cart": "AssertionError: expected status 200 but was 500",
    "Login": "TimeoutError: gateway did not answer within 3000 ms",
    "Payment": "NullPointerException: order was null",
    "Search": "ElementNotFoundError: no such element: results",
}
#: Cases of each module, those of them that fail, and cases without a module.
OF_MODULE, FAILING, LOST = 12, 4, 6
CASES = len(MODULES) * OF_MODULE + LOST
#: Questions to the model: modules, facts, one for merges, one for each cluster, one for the text.
QUESTIONS = LOST + len(MODULES) * FAILING + 1 + len(MODULES) + 1


def write_small(path: Path, *, fixed: str = "", broken: str = "") -> Path:
    """Write the workbook. `fixed`: a module all of whose cases pass; `broken`: one where one more fails."""
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Cases")
        sheet.write_row(0, 0, HEADER)
        for number, row in enumerate(_rows(fixed, broken), 1):
            sheet.write_row(number, 0, row)
    return path


def _rows(fixed: str, broken: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for module in MODULES:
        for number in range(OF_MODULE):
            fails = number < FAILING + (module == broken) and module != fixed
            steps, told = f"open {module}, press {number}", ERRORS[module] if fails else "it does"
            name, severity, ended = f"{module.upper()}-{number}", "major" if fails else "", "Fail" if fails else "Pass"
            title, wanted = f"{module} does its part {number}", f"{module} answers"
            rows.append((name, title, module, f"P{number % 4}", severity, steps, wanted, told, ended))
    lost = ("quince", "oboe", "lynx", "ember", "fjord", "gorse")
    rows += [(f"{word.upper()}1", f"a {word} of sorts", "", "P3", "", "", "", "", "Pass") for word in lost]
    return rows


#: What begins the questions of each kind.
TAGGING, FACT, MERGE, SUMMARY, TEXT = (
    "You sort test cases", "You turn one failed", "You are shown cards", "You name one cluster",
    "You write the analysis",
)  # fmt: skip


def answers(*, module: str = "Cart", cites: tuple[str, ...] = ("CART-0",)) -> dict[str, Any]:
    """Rules for the scripted provider: every answer is valid at once, and follows from its question.

    `module`: of all cases without one; empty: one that the question names.
    """
    text = [{"text": "The model says so.", "cites": list(cites)}]
    told: list[dict[str, Any]] = [
        {"contains": TEXT, "answer": {"objective_and_scope": text, "conclusions": text, "risks": text, "modules": []}},
        {"contains": MERGE, "answer": {"groups": []}},
        {"contains": SUMMARY, "path": "evidence", "pattern": r"\"representative\": ?\"([^\"]+)\"", "all": True},
        {"contains": SUMMARY, "path": "name", "value": "named by the model"},
        {"contains": SUMMARY, "path": "commonality", "value": "They end with the same message."},
        {"contains": SUMMARY, "path": "systemic_risk", "value": "What is beside them may fail, too."},
        {"path": "confidence", "value": 0.9},
    ]
    if module:
        told.append({"contains": TAGGING, "path": "module", "value": module})
    return {"rules": told}


#: A case of each sample, and of the small workbook: those that a report does not have are left out.
CITED = ("TC-PAY-0178", "CART-Web-001", "com.shop.login.LoginTest.login_with_a_wrong_password_1", "CART-0")
#: For the samples.
MESSY = answers(module="", cites=CITED)
