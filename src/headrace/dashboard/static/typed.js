// What destroys a lot asks for a name to be written: a field is right only with the text that it must hold.
"use strict";

document.addEventListener("input", (event) => {
  const wanted = event.target.dataset.mustBe;
  if (wanted !== undefined) event.target.setCustomValidity(event.target.value.trim() === wanted.trim() ? "" : event.target.dataset.rule);
});
