// The grid of a batch: a cell per item. The legend of the page says what a state looks like and is called; a change
// draws the cells that it is of.
"use strict";
{
  const canvas = document.getElementById("grid");
  const said = document.getElementById("grid-said");
  const context = canvas.getContext("2d", { alpha: false });
  const first = Number(canvas.dataset.first);
  // CSS pixels of a cell at most and at least, and how high a grid may be for larger ones.
  const MOST = 18, LEAST = 5, HEIGHT = 560;
  let letters = [...canvas.dataset.letters];
  let unit = 1, gap = 1, columns = 1, scale = 1, sprites = null, places = {};
  let cursor = -1, shown = -1;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // One small picture per letter, with the ground around it, so that to draw a cell is to copy one.
  function makeSprites() {
    const kinds = [...document.querySelectorAll("#grid-counts [data-letter]")];
    sprites = document.createElement("canvas");
    sprites.width = unit * (kinds.length + 1);
    sprites.height = unit;
    places = {};
    const paper = sprites.getContext("2d", { alpha: false });
    paper.fillStyle = colour("--card");
    paper.fillRect(0, 0, sprites.width, unit);
    const side = unit - gap;
    kinds.forEach((kind, index) => {
      const left = index * unit;
      places[kind.dataset.letter] = left;
      for (const rect of kind.querySelectorAll("rect")) {
        const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => (rect.getAttribute(name) / 20) * side);
        paper.fillStyle = getComputedStyle(rect).fill;
        paper.fillRect(left + Math.round(x), Math.round(y), Math.max(Math.round(width), 1), Math.max(Math.round(height), 1));
      }
    });
    // What is not there is a dot.
    places["."] = kinds.length * unit;
    paper.fillStyle = colour("--line");
    const dot = Math.max(Math.round(side / 4), 1), middle = Math.round((side - dot) / 2);
    paper.fillRect(places["."] + middle, middle, dot, dot);
  }

  function layOut() {
    scale = window.devicePixelRatio || 1;
    const width = Math.max(canvas.parentElement.clientWidth - 32, LEAST);
    let side = MOST;
    while (side > LEAST && Math.ceil(letters.length / Math.floor(width / side)) * side > HEIGHT) side -= 1;
    unit = Math.max(Math.round(side * scale), 2);
    gap = Math.max(Math.round(scale), 1);
    columns = Math.max(Math.min(Math.floor((width * scale) / unit), letters.length), 1);
    canvas.width = columns * unit;
    canvas.height = Math.max(Math.ceil(letters.length / columns), 1) * unit;
    canvas.style.width = `${canvas.width / scale}px`;
    canvas.style.height = `${canvas.height / scale}px`;
    makeSprites();
    drawAll();
  }

  function draw(index) {
    const left = places[letters[index]] ?? places["."];
    context.drawImage(sprites, left, 0, unit, unit, (index % columns) * unit, Math.floor(index / columns) * unit, unit, unit);
  }

  function drawAll() {
    context.fillStyle = colour("--card");
    context.fillRect(0, 0, canvas.width, canvas.height);
    for (let index = 0; index < letters.length; index += 1) draw(index);
    drawCursor();
  }

  function drawCursor() {
    if (cursor < 0) return;
    const width = Math.max(Math.round(2 * scale), 2);
    context.strokeStyle = colour("--ink");
    context.lineWidth = width;
    const left = (cursor % columns) * unit, top = Math.floor(cursor / columns) * unit;
    context.strokeRect(left - width / 2 + 0.5, top - width / 2 + 0.5, unit - gap + width - 1, unit - gap + width - 1);
  }

  // The frame of the cursor reaches into the cells around it.
  function around(index) {
    for (const row of [-columns, 0, columns])
      for (const step of [-1, 0, 1]) if (letters[index + row + step]) draw(index + row + step);
  }

  function take(detail) {
    if ("all" in detail) {
      const before = letters;
      letters = [...detail.all];
      if (before.length !== letters.length) return layOut();
      letters.forEach((letter, index) => letter !== before[index] && draw(index));
    } else {
      for (const [start, part] of detail.set) {
        for (let place = 0; place < part.length; place += 1) {
          letters[start + place] = part[place];
          draw(start + place);
        }
      }
    }
    drawCursor();
    if (shown >= 0) say(shown);
  }

  const wordOf = (letter) =>
    document.querySelector(`#grid-counts [data-letter="${letter}"] .word`)?.textContent || canvas.dataset.absent;
  const addressOf = (index) => `${canvas.dataset.items}/${first + index}`;

  function say(index) {
    shown = index;
    const text = canvas.dataset.said.replace("{number}", first + index).replace("{state}", wordOf(letters[index]));
    if (said.textContent === text) return;
    const link = document.createElement("a");
    link.href = addressOf(index);
    link.textContent = text;
    said.replaceChildren(link);
  }

  function indexAt(event) {
    const column = Math.floor((event.offsetX * scale) / unit), row = Math.floor((event.offsetY * scale) / unit);
    const index = row * columns + column;
    return column >= 0 && column < columns && letters[index] ? index : -1;
  }

  function moveTo(index) {
    const before = cursor;
    cursor = Math.min(Math.max(index, 0), letters.length - 1);
    if (before >= 0) around(before);
    drawCursor();
    if (cursor < 0) return;
    say(cursor);
    const top = canvas.getBoundingClientRect().top + (Math.floor(cursor / columns) * unit) / scale;
    if (top < 0) window.scrollBy(0, top - 40);
    else if (top + 20 > window.innerHeight) window.scrollBy(0, top + 40 - window.innerHeight);
  }

  canvas.addEventListener("headrace:text", (event) => take(event.detail));
  canvas.addEventListener("pointermove", (event) => {
    const index = indexAt(event);
    if (index >= 0) say(index);
  });
  canvas.addEventListener("click", (event) => {
    const index = indexAt(event);
    if (index < 0 || letters[index] === ".") return;
    if (event.ctrlKey || event.metaKey) window.open(addressOf(index), "_blank", "noopener");
    else location.assign(addressOf(index));
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const last = letters.length - 1;
    if (event.key in steps) letters[cursor + steps[event.key]] && moveTo(cursor + steps[event.key]);
    else if (event.key === "Home") moveTo(0);
    else if (event.key === "End") moveTo(last);
    else if (event.key === "Enter" && letters[cursor] && letters[cursor] !== ".") location.assign(addressOf(cursor));
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("focus", () => cursor < 0 && letters.length && moveTo(0));
  document.addEventListener("headrace:theme", () => (makeSprites(), drawAll()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (makeSprites(), drawAll()));
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.round(entry.contentRect.width) === width && scale === (window.devicePixelRatio || 1)) return;
    width = Math.round(entry.contentRect.width);
    layOut();
  }).observe(canvas.parentElement);
}
