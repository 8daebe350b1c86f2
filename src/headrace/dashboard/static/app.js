// What all pages have: requests of buttons as JSON with the token against forgery, questions, messages, live parts, keys.
"use strict";

// Bodies of requests are JSON: the service takes nothing else. `data-type` of a field says what its text stands for.
const kinds = {
  number: (text) => (text === "" ? undefined : Number(text)),
  boolean: (text) => text === "true",
  json: (text) => (text.trim() === "" ? undefined : JSON.parse(text)),
  text: (text) => (text === "" ? undefined : text),
};

function valuesOf(form) {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled) continue;
    const kind = field.dataset.type;
    if (field.type === "checkbox") found[field.name] = field.checked;
    else if (field.type === "radio" && !field.checked) continue;
    else found[field.name] = (kinds[kind] || kinds.text)(field.value);
  }
  return found;
}

htmx.defineExtension("json-body", {
  onEvent(name, event) {
    if (name === "htmx:configRequest" && event.detail.verb !== "get") {
      event.detail.headers["Content-Type"] = "application/json";
      event.detail.headers["X-CSRF-Token"] = document.body.dataset.csrf;
    }
  },
  encodeParameters(xhr, _parameters, element) {
    xhr.overrideMimeType("text/json");
    const given = element.getAttribute("hx-vals");
    // A button beside a form may send what stands in it, for another purpose: `data-form` names the form.
    const form = element.tagName === "FORM" ? element : document.getElementById(element.dataset.form);
    const fixed = form && form !== element ? form.getAttribute("hx-vals") : null;
    const written = form ? valuesOf(form) : {};
    const values = { ...written, ...JSON.parse(fixed || "{}"), ...JSON.parse(given || "{}") };
    // `data-whole` names the field that is all of the body.
    if (form?.dataset.whole) return JSON.stringify(values[form.dataset.whole] ?? null);
    return Object.keys(values).length ? JSON.stringify(values) : "";
  },
});

function say(text, kind = "") {
  const toast = document.createElement("p");
  toast.className = `toast ${kind}`;
  toast.textContent = text;
  // What is behind an open dialog is neither seen nor read out.
  const form = document.querySelector("dialog[open] form");
  if (form) {
    toast.setAttribute("role", "alert");
    form.insertBefore(toast, form.querySelector("menu"));
  } else document.getElementById("toasts").append(toast);
  setTimeout(() => toast.remove(), kind === "bad" ? 12000 : 5000);
}

// A field that holds what is no JSON is told of, and nothing is sent.
document.addEventListener("htmx:configRequest", (event) => {
  const asked = event.detail.elt;
  const form = asked.tagName === "FORM" ? asked : document.getElementById(asked.dataset.form);
  for (const field of form ? form.elements : []) {
    field.setCustomValidity?.("");
    if (field.dataset?.type !== "json" || !field.value.trim()) continue;
    try {
      JSON.parse(field.value);
    } catch (error) {
      event.preventDefault();
      field.setCustomValidity(error.message);
      field.reportValidity();
    }
  }
});

// What is written now is another text than the one that was wrong, and another than the one of the preview.
document.addEventListener("input", ({ target }) => {
  if (target.dataset?.type === "json") target.setCustomValidity("");
  for (const button of target.form?.querySelectorAll("[data-shows]") ?? []) document.getElementById(button.dataset.shows).hidden = true;
});

// The second click of a double click is none, nor is a key that is held: what a button does is done once.
const onButton = (event) => event.target.closest?.("main button, dialog button");
document.addEventListener("click", (event) => event.detail > 1 && onButton(event) && stop(event), true);
document.addEventListener("keydown", (event) => event.repeat && event.key === "Enter" && onButton(event) && stop(event), true);

function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

document.addEventListener("htmx:confirm", (event) => {
  const { confirm, counts } = event.detail.elt.dataset;
  if (!confirm) return;
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  // `data-counts` names the field whose value is asked about.
  document.getElementById("confirm-text").textContent = counts ? confirm.replace("{count}", event.detail.elt.elements[counts].value) : confirm;
  dialog.returnValue = "no";
  dialog.showModal();
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && event.detail.issueRequest(true), { once: true });
});

// One that asked is answered before it asks again.
const asking = new WeakSet();
document.addEventListener("htmx:beforeRequest", (event) => asking.has(event.detail.elt) && event.preventDefault());

// The answer is waited for at the request and not at the element that asked: what is live may have replaced that by now.
document.addEventListener("htmx:beforeSend", (event) => {
  const { elt, xhr, requestConfig } = event.detail;
  if (requestConfig.verb === "get") return;
  asking.add(elt);
  elt.closest("dialog")?.querySelector(".toast")?.remove();
  xhr.addEventListener("loadend", () => answered(elt, xhr));
});

async function answered(elt, xhr) {
  asking.delete(elt);
  if (xhr.status < 200 || xhr.status >= 400) {
    let text = document.body.dataset.failed;
    try {
      text = JSON.parse(xhr.responseText).detail || text;
    } catch {
      // what answered was no service of ours
    }
    say(text, "bad");
    if (elt.dataset.shows) document.getElementById(elt.dataset.shows).hidden = true;
    return;
  }
  if (elt.dataset.shows) {
    const place = document.getElementById(elt.dataset.shows);
    place.textContent = JSON.stringify(JSON.parse(xhr.responseText), null, 2).slice(0, 16384);
    place.hidden = false;
    return;
  }
  if (elt.dataset.goto) {
    const there = new URL(elt.dataset.goto.replace("{id}", encodeURIComponent(idIn(xhr.responseText))), location.href);
    asking.add(elt);
    if (there.origin === location.origin) location.assign(there);
    return;
  }
  elt.closest("dialog")?.close();
  if (elt.dataset.done) say(elt.dataset.done);
  document.dispatchEvent(new CustomEvent("headrace:done", { detail: elt }));
  await refresh();
}

function idIn(text) {
  try {
    const found = JSON.parse(text);
    return found.id || found.run || found.job || found.job_id || found.run_id || found.batch_id || "";
  } catch {
    return "";
  }
}

// The page is asked for anew, and only what differs is changed, so that scrolling, focus and open parts stay.
async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok || answer.redirected) return location.reload();
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  morph(document.getElementById("main"), fresh.innerHTML);
}

function morph(target, html) {
  Idiomorph.morph(target, html, {
    morphStyle: "innerHTML",
    callbacks: {
      // What people opened, wrote or drew stays as it is.
      beforeNodeMorphed: (old) => !(old.nodeType === 1 && old.hasAttribute("data-keep")),
      beforeAttributeUpdated: (name, node) => !(name === "open" && (node.tagName === "DETAILS" || node.tagName === "DIALOG")),
    },
  });
  htmx.process(target);
}

// Live parts. A hidden page lets go of its connection: browsers have few of them for one site.
const live = { source: null, retry: 0, held: new Map() };

// What an open question or form is about must still be there when it is answered: until then its news are held.
function show(part, html) {
  if (document.querySelector("dialog[open]")) live.held.set(part, html);
  else morph(part, html);
}

// A dialog asks for what it is about as it closes, and this listener is called before those of the dialog.
document.addEventListener("close", () => setTimeout(catchUp), true);

function catchUp() {
  const held = [...live.held];
  live.held.clear();
  for (const [part, html] of held) show(part, html);
}

// Whether news come is told in a word, not by a colour alone.
function beat(state, why = "") {
  const pulse = document.getElementById("pulse");
  if (!pulse) return;
  pulse.dataset.state = state;
  pulse.title = why || pulse.dataset[`${state}Title`];
  const word = pulse.querySelector(".word");
  if (word.textContent !== pulse.dataset[state]) word.textContent = pulse.dataset[state];
}

function follow() {
  const url = document.body.dataset.live;
  if (!url || live.source || document.hidden) return;
  const source = (live.source = new EventSource(url));
  source.onopen = () => beat("on");
  source.onerror = () => {
    beat("lost");
    if (source.readyState === EventSource.CLOSED) {
      leave();
      live.retry = setTimeout(again, 5000);
    }
  };
  for (const part of document.querySelectorAll("[data-part]")) {
    source.addEventListener(part.dataset.part, (event) => show(part, event.data));
  }
  for (const part of document.querySelectorAll("[data-text]")) {
    source.addEventListener(part.dataset.text, (event) => {
      part.dispatchEvent(new CustomEvent("headrace:text", { detail: JSON.parse(event.data) }));
    });
  }
  source.addEventListener("trouble", (event) => beat(event.data ? "lost" : "on", event.data));
}

// A stream that was refused is asked for again; whoever is logged out by now is shown the way in.
async function again() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.redirected) location.reload();
  else follow();
}

// Whoever follows a link of another site comes without the cookie, which no other site makes a browser send: who is
// logged in goes on to what was asked for.
async function goOn(form) {
  const answer = await fetch(form.dataset.goto, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.ok && !answer.redirected) location.replace(form.dataset.goto);
}

function leave() {
  clearTimeout(live.retry);
  live.source?.close();
  live.source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", follow);

// Light or dark, language, menu.
function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("headrace-theme", next);
  document.dispatchEvent(new CustomEvent("headrace:theme"));
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) switchTheme();
  const opener = event.target.closest("[data-opens]");
  if (opener) {
    const part = document.getElementById(opener.dataset.opens);
    if (part.tagName === "DIALOG") part.showModal();
    else opener.setAttribute("aria-expanded", String(part.toggleAttribute("data-open")));
  }
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest("dialog").close();
});

document.addEventListener("change", (event) => {
  if (event.target.dataset.sets === "locale") {
    const path = document.body.dataset.base || "/";
    document.cookie = `headrace_locale=${event.target.value}; path=${path}; SameSite=Strict; max-age=31536000`;
    location.reload();
  }
  if (event.target.hasAttribute("data-submits")) event.target.form.requestSubmit();
});

// Keys, where nobody writes.
const places = { o: "", b: "batches", j: "jobs", r: "runs", q: "queues", d: "dead-letters" };
let going = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open], [data-keys]")) return;
  const went = Date.now() - going < 1500;
  going = 0;
  if (went && event.key in places) {
    // For keys of the page it is none of theirs.
    stop(event);
    location.assign(`${document.body.dataset.base}/${places[event.key]}`);
  } else if (event.key === "g") going = Date.now();
  else if (event.key === "t") switchTheme();
  else if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (event.key === "/") {
    const field = document.querySelector("main [type=search], main input");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  }
});

// Once the scripts of the page listen too.
document.addEventListener("DOMContentLoaded", () => {
  follow();
  const wayIn = document.querySelector("form[data-way-in]");
  if (wayIn && location.search) goOn(wayIn);
});
