"use strict";
(() => {
  // So many documents are printed at once; a browser needs minutes for more.
  const PRINTED = 200;
  const NOT_EXTRACTED = "not extracted";

  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const plain = (word) => word.replaceAll("_", " ");

  // Words only ever become text, never markup.
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "click") element.addEventListener("click", value);
      else if (value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== ""));
    return element;
  }
  const span = (kind, ...children) => make("span", { class: kind }, ...children);

  const index = read("index");
  const documents = index.documents;
  const shown = new Set([...index.statuses, NOT_EXTRACTED]);
  const decoded = new Map();
  let search = "";
  let opened = -1; // number of the document
  let chosen = -1; // number of the value within it

  function values(number) {
    if (!decoded.has(number)) decoded.set(number, documents[number].problem ? [] : read(`values-${number}`));
    return decoded.get(number);
  }

  // Filters

  const isShown = (value) => shown.has(value.status);
  function matches(entry) {
    if (search && !entry.name.toLowerCase().includes(search)) return false;
    if (entry.problem) return shown.has(NOT_EXTRACTED);
    return Object.keys(entry.counts).some((status) => shown.has(status));
  }
  const matching = () => documents.flatMap((entry, number) => (matches(entry) ? [number] : []));

  function countOf(status) {
    if (status === NOT_EXTRACTED) return documents.filter((entry) => entry.problem).length;
    return documents.reduce((sum, entry) => sum + (entry.counts[status] || 0), 0);
  }

  function showFilters() {
    for (const status of shown) {
      const count = countOf(status);
      if (!count) continue;
      const box = make("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => {
        if (box.checked) shown.add(status);
        else shown.delete(status);
        showDocuments();
        showValues();
      });
      byId("filters").append(make("label", {}, box, ` ${plain(status)} `, span(status, String(count))));
    }
  }

  // Documents

  function showDocuments() {
    const items = matching().map((number) => {
      const entry = documents[number];
      const current = number === opened ? { "aria-current": "true" } : {};
      const button = make("button", { type: "button", ...current, click: () => open(number) }, entry.name, counts(entry));
      return make("li", {}, button);
    });
    byId("documents").replaceChildren(...items);
  }

  function counts(entry) {
    if (entry.problem) return span("counts problem", NOT_EXTRACTED);
    const told = index.statuses.filter((status) => entry.counts[status]);
    const parts = told.map((status) => span(status, `${entry.counts[status]} ${plain(status)} `));
    const decided = entry.decided ? span("found", `✓ ${entry.decided} reviewed`) : null;
    return span("counts", ...parts, decided);
  }

  function open(number, value = -1) {
    opened = number;
    chosen = -1;
    showDocuments();
    showValues();
    showText();
    byId("values").scrollTop = 0;
    byId("text").scrollTop = 0;
    document.querySelector("#documents [aria-current]")?.scrollIntoView({ block: "nearest" });
    if (value >= 0) choose(value);
    else remember();
  }

  // Values

  function showValues() {
    const panel = byId("values");
    panel.replaceChildren();
    if (opened < 0) return;
    const entry = documents[opened];
    panel.append(make("h2", {}, entry.name));
    for (const line of entry.about) panel.append(make("p", { class: "about" }, line));
    if (entry.problem) panel.append(make("p", { class: "problem" }, entry.problem));
    let heading = "";
    let list = null;
    values(opened).forEach((value, number) => {
      if (!isShown(value)) return;
      if (list === null || heading !== headingOf(value)) {
        heading = headingOf(value);
        list = make("ul", {});
        panel.append(heading ? make("h3", {}, heading) : "", list);
      }
      list.append(showValue(value, number));
    });
    if (list === null && !entry.problem) panel.append(make("p", { class: "about" }, "No value has one of the chosen statuses."));
    if (chosen >= 0) markChosen();
  }

  function headingOf(value) {
    if (!value.group) return "";
    return `${value.group} ${value.row}` + (value.name ? `: ${value.name}` : "");
  }

  function showValue(value, number) {
    const chip = span(`chip ${value.status}`, plain(value.status));
    const top = [chip, reviewChip(value), span("name", value.field)];
    const button = make("button", { type: "button", click: () => choose(number) }, ...top.filter(Boolean), ...evidence(value));
    button.title = index.fields[value.group][value.field][0];
    const item = make("li", { class: "value", "data-value": String(number) }, button);
    if (value.candidates) item.append(make("div", { class: "both" }, ...value.candidates.map((one, side) => candidate(one, number, side))));
    return item;
  }

  function reviewChip(value) {
    const review = value.review;
    if (!review) return null;
    const verified = review.value ? `: ${review.value}` : "";
    const chip = span("chip found", `✓ ${review.answer}${verified} (${review.by})`);
    if (review.comment) chip.title = review.comment;
    return chip;
  }

  function evidence(finding) {
    const unit = finding.field ? index.fields[finding.group][finding.field][1] : "";
    const parts = [];
    if (finding.value) parts.push(span("said", finding.value, unit ? ` ${unit}` : ""));
    if (finding.quote) parts.push(span("quote", finding.quote));
    if (finding.where) parts.push(span("where", [finding.where, finding.section, alignment(finding)].filter(Boolean).join(" · ")));
    if (finding.lost) parts.push(span("where problem", finding.lost));
    if (finding.note && !finding.candidates) parts.push(span("note", finding.note));
    return parts;
  }

  const alignment = (finding) => (finding.status === "found" ? `quote ${finding.alignment}` : "");

  function candidate(one, number, side) {
    const words = one.value ? evidence(one) : [span(`said ${one.status}`, plain(one.status)), ...evidence(one)];
    const click = () => choose(number, side);
    return make("button", { type: "button", class: "candidate", click }, span("by", one.by), ...words);
  }

  // Text

  function showText() {
    const panel = byId("text");
    panel.replaceChildren();
    if (opened < 0 || documents[opened].problem) return;
    const text = read(`text-${opened}`);
    if (text.missing) panel.append(make("p", { class: "problem" }, text.missing));
    if (text.shortened) panel.append(make("p", { class: "about" }, "Shortened to what surrounds the quotes, to keep this page small."));
    for (const page of text.pages || []) {
      const words = make("div", { class: "words" }, ...page.parts.map(part));
      panel.append(make("section", { class: "page" }, make("h3", {}, `Page ${page.number}`), words));
    }
  }

  function part(words) {
    if (words === null) return make("span", { class: "cut" }, "[…]");
    if (typeof words === "string") return document.createTextNode(words);
    const [text, marks] = words;
    return make("mark", { "data-marks": marks.join(" "), click: () => choose(valueOf(marks[0])) }, text);
  }

  const findings = (value) => (value.candidates ? value.candidates : [value]);
  const valueOf = (mark) => values(opened).findIndex((value) => findings(value).some((one) => one.mark === mark));

  // Choosing

  function choose(number, side = 0) {
    if (number < 0) return;
    chosen = number;
    const value = values(opened)[number];
    if (!isShown(value)) {
      shown.add(value.status);
      for (const box of document.querySelectorAll("#filters input")) box.checked ||= box.parentElement.textContent.includes(plain(value.status));
      showDocuments();
      showValues();
    }
    markChosen();
    highlight(value, side);
    remember();
    byId("said").textContent = spoken(value);
  }

  function markChosen() {
    for (const item of document.querySelectorAll("#values .value")) item.classList.toggle("chosen", item.dataset.value === String(chosen));
    const item = document.querySelector("#values .chosen");
    if (!item) return;
    item.scrollIntoView({ block: "nearest" });
    if (!item.contains(document.activeElement)) item.querySelector("button").focus({ preventScroll: true });
  }

  function highlight(value, side) {
    const sides = findings(value).map((one) => one.mark);
    let target = null;
    for (const mark of document.querySelectorAll("#text mark")) {
      const own = mark.dataset.marks.split(" ").map(Number);
      const [first, second] = [own.includes(sides[0]), own.includes(sides[1])];
      mark.classList.toggle("on", first || second);
      mark.classList.toggle("first", first);
      mark.classList.toggle("second", second);
      if (own.includes(sides[side])) target ||= mark;
    }
    target ||= document.querySelector("#text mark.on");
    if (target) target.scrollIntoView({ block: "center" });
  }

  function spoken(value) {
    const said = value.candidates ? value.candidates.map((one) => one.value || plain(one.status)).join(" or ") : value.value;
    return [value.field, plain(value.status), said, value.where].filter(Boolean).join(", ");
  }

  // Places as addresses: a link to one value of one document

  function remember() {
    const place = `#${documents[opened].id.slice(0, 12)}` + (chosen >= 0 ? `/${chosen}` : "");
    try {
      history.replaceState(null, "", place);
    } catch {
      // Some browsers refuse this to local files; only the address is lost.
    }
  }

  function openAddress() {
    const [id, value] = location.hash.slice(1).split("/");
    const number = id ? documents.findIndex((entry) => entry.id.startsWith(id)) : -1;
    if (number < 0) return false;
    const wanted = value === undefined ? -1 : Number(value);
    open(number, Number.isInteger(wanted) && wanted < values(number).length ? wanted : -1);
    return true;
  }

  // Keyboard

  function step(by) {
    const list = values(opened).flatMap((value, number) => (isShown(value) ? [number] : []));
    const next = by > 0 ? list.find((number) => number > chosen) : list.findLast((number) => number < chosen);
    if (next !== undefined) choose(next);
    else stepDocument(by, true);
  }

  function stepDocument(by, withValue = false) {
    const list = matching();
    const next = by > 0 ? list.find((number) => number > opened) : list.findLast((number) => number < opened);
    if (next === undefined) return;
    open(next);
    const own = values(next).flatMap((value, number) => (isShown(value) ? [number] : []));
    if (withValue && own.length) choose(by > 0 ? own[0] : own[own.length - 1]);
  }

  const KEYS = { j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1), "]": () => stepDocument(1), "[": () => stepDocument(-1), "/": () => byId("find").focus() };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=search]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const action = KEYS[event.key];
    if (!action || opened < 0) return;
    event.preventDefault();
    action();
  });

  byId("find").addEventListener("input", (event) => {
    search = event.target.value.trim().toLowerCase();
    showDocuments();
  });

  // Printing: the record, and all values with their quotes

  function printed(number) {
    const entry = documents[number];
    const rows = values(number).filter(isShown).flatMap((value) => findings(value).map((one) => row(value, one)));
    const head = make("tr", {}, ...["Field", "Value", "Status", "Quote", "Place"].map((title) => make("th", {}, title)));
    const body = rows.length ? make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)) : "";
    return make("section", {}, make("h2", {}, entry.name), entry.problem ? make("p", {}, entry.problem) : "", body);
  }

  function row(value, one) {
    const name = [headingOf(value), value.field].filter(Boolean).join(": ");
    const by = one.by ? `${plain(value.status)} (${one.by})` : plain(value.status);
    const unit = one.value ? ` ${index.fields[value.group][value.field][1]}` : "";
    const cells = [name, (one.value || "") + unit, by, one.quote || "", one.where || one.note || ""];
    return make("tr", {}, ...cells.map((text) => make("td", {}, text)));
  }

  window.addEventListener("beforeprint", () => {
    const list = matching();
    const more = list.length > PRINTED ? make("p", {}, `Only the first ${PRINTED} of ${list.length} documents; find fewer to print others.`) : "";
    byId("record").open = true;
    byId("printed").replaceChildren(...list.slice(0, PRINTED).map(printed), more);
  });
  window.addEventListener("afterprint", () => byId("printed").replaceChildren());
  window.addEventListener("hashchange", openAddress);

  showFilters();
  showDocuments();
  if (!openAddress() && documents.length) open(matching()[0] ?? 0);
})();
