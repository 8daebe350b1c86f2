// Before anything is drawn: light or dark as it was chosen, else as the system has it.
(() => {
  const chosen = localStorage.getItem("headrace-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
