"use strict";
// Sorting, filtering and paging of tables. Without it every row stands there, in the order of the file.
(() => {
  const MOST = 100;
  const words = document.body.dataset;
  const collator = new Intl.Collator(document.documentElement.lang, { numeric: true, sensitivity: "base" });
  const grids = [];

  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  class Grid {
    constructor(table) {
      this.table = table;
      this.body = table.tBodies[0];
      this.rows = [...this.body.rows];
      this.heads = [...table.tHead.rows[0].cells];
      this.order = this.rows;
      this.page = 0;
      this.every = false;
      this.selects = new Map();
      this.heads.forEach((head, index) => this.addSort(head, index));
      if (table.classList.contains("filterable")) this.addTools();
      this.show();
    }

    addSort(head, index) {
      const name = head.textContent;
      const button = make("button", { type: "button", textContent: name, title: words.sort.replace("@", name) });
      button.addEventListener("click", () => this.sort(head, index));
      head.replaceChildren(button);
    }

    addTools() {
      this.search = make("input", { type: "search", placeholder: words.filterHint, autocomplete: "off" });
      this.search.setAttribute("aria-label", words.filterHint);
      this.search.addEventListener("input", () => this.changed());
      const tools = make("div", { className: "tools" }, this.search);
      this.heads.forEach((head, index) => {
        if ("choose" in head.dataset) tools.append(this.addSelect(head, index));
      });
      this.shown = make("span", { className: "shown" });
      this.shown.setAttribute("role", "status");
      this.before = this.addButton(words.previous, () => { this.page -= 1; this.show(); });
      this.after = this.addButton(words.next, () => { this.page += 1; this.show(); });
      this.all = this.addButton(words.every, () => { this.every = true; this.show(); });
      tools.append(this.addButton(words.reset, () => this.reset()), this.shown, this.before, this.after, this.all);
      this.table.closest(".scroll").before(tools);
    }

    addButton(text, act) {
      const button = make("button", { type: "button", textContent: text });
      button.addEventListener("click", act);
      return button;
    }

    addSelect(head, index) {
      const name = head.textContent;
      const values = [...new Set(this.rows.map((row) => row.cells[index].textContent))].sort(collator.compare);
      const every = make("option", { value: "*", textContent: words.all.replace("@", name) });
      const options = values.map((value) => make("option", { value: `=${value}`, textContent: value || words.none }));
      const select = make("select", {}, every, ...options);
      select.setAttribute("aria-label", name);
      select.addEventListener("change", () => this.changed());
      this.selects.set(index, select);
      return select;
    }

    changed() { this.page = 0; this.every = false; this.show(); }

    reset() {
      if (this.search) this.search.value = "";
      for (const select of this.selects.values()) select.value = "*";
      this.order = this.rows;
      for (const head of this.heads) head.removeAttribute("aria-sort");
      this.changed();
    }

    /** Show the rows that have just these words, by the keys of columns. */
    only(wanted) {
      this.reset();
      this.heads.forEach((head, index) => {
        const select = this.selects.get(index);
        if (select && head.dataset.key in wanted) select.value = `=${wanted[head.dataset.key]}`;
      });
      this.changed();
    }

    sort(head, index) {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of this.heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const numeric = ["k-number", "k-percent", "k-seconds"].some((kind) => head.classList.contains(kind));
      const key = (row) => {
        const cell = row.cells[index];
        return numeric ? parseFloat(cell.dataset.v ?? cell.textContent) : cell.textContent;
      };
      const compare = numeric ? (a, b) => a - b : collator.compare;
      // What has no value comes last in both directions.
      const blank = (value) => value === "" || Number.isNaN(value);
      this.order = this.rows
        .map((row) => [key(row), row])
        .sort(([a], [b]) => blank(a) - blank(b) || (blank(a) ? 0 : up ? compare(a, b) : compare(b, a)))
        .map(([, row]) => row);
      this.changed();
    }

    matching() {
      const text = (this.search?.value ?? "").trim().toLowerCase();
      const chosen = [...this.selects].filter(([, select]) => select.value !== "*");
      if (!text && !chosen.length) return this.order;
      return this.order.filter((row) => {
        if (chosen.some(([index, select]) => `=${row.cells[index].textContent}` !== select.value)) return false;
        row.words ??= row.textContent.toLowerCase();
        return row.words.includes(text);
      });
    }

    show() {
      const rows = this.matching();
      const paged = Boolean(this.shown) && !this.every && rows.length > MOST;
      const pages = paged ? Math.ceil(rows.length / MOST) : 1;
      this.page = Math.max(0, Math.min(this.page, pages - 1));
      const from = this.page * MOST;
      this.body.replaceChildren(...(paged ? rows.slice(from, from + MOST) : rows));
      if (!this.shown) return;
      const part = paged ? `${from + 1}–${Math.min(from + MOST, rows.length)}` : `${rows.length}`;
      const of = rows.length === this.rows.length || !paged ? `${this.rows.length}` : `${rows.length} (${this.rows.length})`;
      this.shown.textContent = words.shown.replace("@", part).replace("#", of);
      this.before.hidden = this.after.hidden = this.all.hidden = !paged;
      this.before.disabled = this.page === 0;
      this.after.disabled = this.page === pages - 1;
    }

    /** Bring a row onto the page, whatever hides it. */
    reveal(row) {
      if (!this.matching().includes(row)) this.reset();
      this.page = Math.floor(this.matching().indexOf(row) / MOST);
      this.show();
    }
  }

  const go = () => {
    const id = location.hash.slice(1);
    document.querySelectorAll(".hit").forEach((element) => element.classList.remove("hit"));
    if (!id) return;
    for (const grid of grids) {
      const row = grid.rows.find((one) => one.id === id);
      if (!row) continue;
      grid.reveal(row);
      row.classList.add("hit");
      row.scrollIntoView({ block: "center" });
      return;
    }
  };

  const focusFilter = () => {
    const tools = grids.filter((grid) => grid.search);
    const near = tools.filter((grid) => grid.search.getBoundingClientRect().top < innerHeight).at(-1) ?? tools[0];
    near?.search.focus();
  };

  document.querySelectorAll("table.grid").forEach((table) => grids.push(new Grid(table)));

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-filter]");
    const cases = grids.find((grid) => grid.table.id === "table-cases");
    if (!link || !cases) return;
    cases.only(JSON.parse(link.dataset.filter));
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      focusFilter();
    }
  });
  addEventListener("hashchange", go);
  // The same link once more changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) go();
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    grids.forEach((grid) => grid.body.replaceChildren(...grid.matching()));
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.forEach((one) => { one.open = false; });
    grids.forEach((grid) => grid.show());
  });
  go();
})();
