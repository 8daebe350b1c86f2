// Forms whose address names what a field says, and buttons that say what the fields of a dialog begin with.
"use strict";

// A field with `data-fills="name"` stands for {name} in the address of its form; it has no name of its own.
document.addEventListener("htmx:configRequest", (event) => {
  const form = event.detail.elt;
  if (form.tagName !== "FORM") return;
  for (const field of form.querySelectorAll("[data-fills]")) {
    event.detail.path = event.detail.path.replace(`%7B${field.dataset.fills}%7D`, encodeURIComponent(field.value.trim()));
  }
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens][data-given]");
  if (!opener) return;
  const given = JSON.parse(opener.dataset.given);
  const form = document.getElementById(opener.dataset.opens).querySelector("form");
  for (const field of form.elements) {
    const name = field.dataset.fills || field.name;
    if (name in given) field.value = given[name];
  }
});
