"""Every action that pages offer, done in a real browser: each button and form of each kind once, and what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from headrace.dashboard.page import Page
from tests.acceptance.dashboard_walk import Walk
from tests.unit.browser import Tab

#: Ids in paths: of jobs, batches, runs, sessions, tokens, and of reports.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}")
#: What is no action of a page, but of the frame; and what others of the same page could not be done after.
FRAME, ENDS = ("/logout",), ("/cancel", "/deactivate", "/drop", "/cleanup")
_ALL = 'document.querySelectorAll("[hx-post], [hx-put], [hx-patch], [hx-delete]")'
_OFFERED = f"""[...{_ALL}].map((one) => {{
  const verb = ["post", "put", "patch", "delete"].find((name) => one.hasAttribute("hx-" + name));
  return {{verb, target: one.getAttribute("hx-" + verb), label: one.textContent.trim().slice(0, 40)}};
}})"""
#: Opens what the element lies in, fills what must be filled, and does what a person does: a click, or sending the form.
_DO = f"""((verb, target, samples) => {{
  const one = [...{_ALL}].find((each) => each.getAttribute("hx-" + verb) === target);
  if (!one) return null;
  const dialog = one.closest("dialog");
  if (dialog && !dialog.open) dialog.showModal();
  const form = one.tagName === "FORM" ? one : document.getElementById(one.dataset.form);
  const named = (field) => field.dataset.fills || field.name;
  const fields = [...(form ? form.elements : [])].filter((field) => named(field) && field.type !== "hidden");
  for (const field of fields)
    if (!field.value && (field.required || named(field) in samples)) field.value = samples[named(field)] ?? "1";
  for (const field of form ? form.elements : []) {{
    if (field.dataset.mustBe) field.value = field.dataset.mustBe;
    field.dispatchEvent(new Event("input", {{bubbles: true}}));
  }}
  const wrong = fields.filter((field) => !field.checkValidity()).map(named);
  if (wrong.length) return wrong.join();
  window.told = [];
  document.addEventListener("htmx:beforeSend", (event) => {{
    const {{ xhr }} = event.detail;
    xhr.addEventListener("loadend", () => window.told.push([xhr.status, xhr.responseText.slice(0, 300)]));
  }});
  one.tagName === "FORM" ? one.requestSubmit() : one.click();
  return "";
}})"""
#: Says yes where it is asked; true once there is an answer, or another page, as there is behind what worked.
_ANSWERED = """(() => {
  const asked = document.getElementById("confirm");
  if (asked?.open) asked.querySelector("[value=yes]").click();
  return window.told === undefined || window.told.length > 0;
})()"""
#: What fields without a value of their own are given.
SAMPLES = {
    "payload": '{"yes": true}', "input": "3", "rate": "60/m", "cap": "3", "weight": "2", "reason": "tea",
    "retention": "7d", "cost": "5", "tokens": "100000", "name": "queue:mail",
    "scope": "tenant:acme", "queue": "mail", "key": "acme", "dollars": "5",
    "flow": '{"nodes": [], "connections": {}}', "file_ref": "file:cases.csv",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Action:
    """What a page offers, and what came of it: a status of 0 where nothing happened."""

    page: str
    path: str
    verb: str
    target: str
    label: str
    status: int = 0
    said: str = "nothing happened"

    @property
    def kind(self) -> tuple[str, str, str]:
        """What it has in common with others of its kind."""
        return self.page, self.verb, _ID.sub("ID", self.target)

    @property
    def faults(self) -> list[str]:
        """What is wrong, in words: nothing happened, or the service failed."""
        if 0 < self.status < 500:
            return []
        return [f"{self.path}: {self.label!r} ({self.verb} {self.target}) ended with {self.status}: {self.said}"]


def do_all(tab: Tab, base: str, pages: Iterable[Page], paths: Iterable[str]) -> list[Action]:
    """Do each kind of action of the pages at some addresses once, and return what came of each."""
    walk, found = Walk(tab, base, pages), dict[tuple[str, str, str], Action]()
    for path in paths:
        tab.visit(base + path)
        offered_here = offers(tab, walk.kind_of(path) or path, path)
        for offered in sorted(offered_here, key=lambda one: (one.target.endswith(ENDS), one.verb == "delete")):
            if offered.kind not in found and not offered.target.endswith(FRAME):
                found[offered.kind] = _do(tab, base, offered)
    return list(found.values())


def offers(tab: Tab, page: str, path: str) -> list[Action]:
    """Return what the open page offers."""
    return [Action(page, path, one["verb"], one["target"], one["label"]) for one in tab.ask(_OFFERED)]


def _do(tab: Tab, base: str, action: Action) -> Action:
    tab.visit(base + action.path)
    wrong = tab.ask(f"{_DO}({json.dumps(action.verb)}, {json.dumps(action.target)}, {json.dumps(SAMPLES)})")
    if wrong is None:
        return replace(action, status=204, said="another action took it away")
    if wrong:
        return replace(action, said=f"its fields cannot be sent: {wrong}")
    try:
        tab.wait_for(_ANSWERED)
    except AssertionError:
        return action
    told: list[Any] | None = tab.ask("window.told ?? null")
    status, said = told[0] if told else (200, "led to another page")
    return replace(action, status=status, said=said)
