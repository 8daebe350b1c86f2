// A file that is chosen is put into the field that `data-reads` names, for people to see it before it is sent.
"use strict";

document.addEventListener("change", async (event) => {
  const field = document.getElementById(event.target.dataset?.reads);
  const [file] = event.target.files ?? [];
  if (!field || !file) return;
  field.value = await file.text();
  field.dispatchEvent(new Event("input", { bubbles: true }));
});
