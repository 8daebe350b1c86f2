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
  });
  const told = await answer.json();
  if (!answer.ok) return say(told.detail, "bad");
  document.getElementById("file-ref").value = told.file_ref;
  say(field.dataset.done);
});
