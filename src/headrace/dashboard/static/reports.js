// A workbook is sent as it is, and a report is then made of it.
"use strict";

document.addEventListener("change", async (event) => {
  const field = event.target;
  if (field.id !== "workbook" || !field.files.length) return;
  const [file] = field.files;
  const answer = await fetch(`${field.dataset.to}/${encodeURIComponent(file.name)}`, {
    method: "PUT",
    body: file,
    headers: { "Content-Type": "application/octet-stream", "X-CSRF-Token": document.body.dataset.csrf },
  }).catch(() => null);
  const told = await answer?.json().catch(() => null);
  if (!answer?.ok || !told) return say(told?.detail || document.body.dataset.failed, "bad");
  document.getElementById("file-ref").value = told.file_ref;
  say(field.dataset.done);
});
