// Values of papers: keys that go from one to the next and decide, and one dialog that corrects any of them.
"use strict";

const values = () => [...document.querySelectorAll("[data-value]")];
const rowOf = (element) => element?.closest?.("[data-value]") ?? null;

function go(row) {
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = values();
  const here = all.indexOf(rowOf(document.activeElement));
  go(here < 0 ? all[0] : all[Math.min(Math.max(here + by, 0), all.length - 1)]);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
  const row = rowOf(document.activeElement);
  if (event.key === "j" || (row && event.key === "ArrowDown")) step(1);
  else if (event.key === "k" || (row && event.key === "ArrowUp")) step(-1);
  else {
    const button = row && !event.repeat && "aer12u".includes(event.key) && row.querySelector(`[data-key="${event.key}"] button`);
    if (!button) return;
    button.click();
  }
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-corrects]");
  if (!button) return;
  const form = document.getElementById("correct-form");
  form.reset();
  form.dataset.path = button.dataset.corrects;
  form.dataset.row = rowOf(button).id;
  form.elements.edited_value.value = button.dataset.text;
  document.getElementById("correct-label").textContent = button.dataset.label;
  document.getElementById("correct-rule").textContent = button.dataset.rule;
  const choices = JSON.parse(button.dataset.choices).map((text) => new Option(text, text));
  document.getElementById("correct-choices").replaceChildren(...choices);
  document.getElementById("correct").showModal();
  form.elements.edited_value.select();
});

document.addEventListener("htmx:configRequest", (event) => {
  const form = event.detail.elt;
  if (form.id === "correct-form") event.detail.path = form.dataset.path;
});

// What is decided is left behind: the next value is looked at.
document.addEventListener("headrace:done", ({ detail: elt }) => {
  const row = elt.id === "correct-form" ? document.getElementById(elt.dataset.row) : rowOf(elt);
  if (!row) return;
  const all = values();
  go(all[all.indexOf(row) + 1] ?? row);
});
