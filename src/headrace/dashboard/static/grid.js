// The grid of a batch: a cell per item. The legend of the page says what a state looks like and is called; a change
// draws the cells that it is of.
"use strict";
{
  const canvas = document.getElementById("grid");
  const said = document.getElementById("grid-said");
  // Pixels are put on it, not painted: it need not lie where a graphics card has it.
  const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  const first = Number(canvas.dataset.first);
  // CSS pixels of a cell at most and at least, and how high a grid may be for larger ones.
  const MOST = 18, LEAST = 5, HEIGHT = 560;
  let letters = [...canvas.dataset.letters];
  let unit = 1, gap = 1, columns = 1, scale = 1;
  let cursor = -1, shown = -1;
  // What each letter looks like, what the canvas shall show, and which of its rows differ from what it shows.
  let pictures = {}, image = null, pixels = null, top = Infinity, bottom = 0;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A picture of a cell with the ground around it, so that to draw a cell is to copy pixels.
  function pictureOf(paint) {
    const paper = document.createElement("canvas");
    paper.width = paper.height = unit;
    const brush = paper.getContext("2d", { alpha: false, willReadFrequently: true });
    brush.fillStyle = colour("--card");
    brush.fillRect(0, 0, unit, unit);
    paint(brush, unit - gap);
    return new Uint32Array(brush.getImageData(0, 0, unit, unit).data.buffer);
  }

  function makePictures() {
    pictures = {};
    for (const kind of document.querySelectorAll("#grid-counts [data-letter]")) {
      pictures[kind.dataset.letter] = pictureOf((brush, side) => {
        for (const rect of kind.querySelectorAll("rect")) {
          const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Math.round((rect.getAttribute(name) / 20) * side));
          brush.fillStyle = getComputedStyle(rect).fill;
          brush.fillRect(x, y, Math.max(width, 1), Math.max(height, 1));
        }
      });
    }
    // What is not there is a dot.
    pictures["."] = pictureOf((brush, side) => {
      const dot = Math.max(Math.round(side / 4), 1), middle = Math.round((side - dot) / 2);
      brush.fillStyle = colour("--line");
      brush.fillRect(middle, middle, dot, dot);
    });
  }

  function layOut() {
    cursor = Math.min(cursor, letters.length - 1);
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
    makePictures();
    drawAll();
  }

  function drawAll() {
    image = context.createImageData(canvas.width, canvas.height);
    pixels = new Uint32Array(image.data.buffer).fill(pictureOf(() => {})[0]);
    letters.forEach((_, index) => draw(index));
    [top, bottom] = [0, canvas.height];
    show();
  }

  function draw(index) {
    const picture = pictures[letters[index]] || pictures["."];
    const row = Math.floor(index / columns) * unit, wide = columns * unit;
    let place = row * wide + (index % columns) * unit;
    for (let from = 0; from < picture.length; place += wide - unit) {
      for (const end = from + unit; from < end; from += 1, place += 1) pixels[place] = picture[from];
    }
    top = Math.min(top, row);
    bottom = Math.max(bottom, row + unit);
  }

  // Put what was drawn on the canvas, in one piece.
  function show() {
    if (bottom > top) context.putImageData(image, 0, 0, 0, top, canvas.width, bottom - top);
    top = Infinity;
    bottom = 0;
    drawCursor();
  }

  function drawCursor() {
    if (cursor < 0) return;
    const width = Math.max(Math.round(2 * scale), 2);
    context.strokeStyle = colour("--ink");
    context.lineWidth = width;
    const left = (cursor % columns) * unit, above = Math.floor(cursor / columns) * unit;
    context.strokeRect(left - width / 2 + 0.5, above - width / 2 + 0.5, unit - gap + width - 1, unit - gap + width - 1);
  }

  // The frame of the cursor reaches into the cells around it: their rows are shown anew without it.
  function wipeCursor() {
    if (cursor < 0) return;
    const row = Math.floor(cursor / columns) * unit;
    top = Math.max(Math.min(top, row - unit), 0);
    bottom = Math.min(Math.max(bottom, row + 2 * unit), canvas.height);
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
    show();
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
    wipeCursor();
    cursor = Math.min(Math.max(index, 0), letters.length - 1);
    show();
    if (cursor < 0) return;
    say(cursor);
    const height = canvas.getBoundingClientRect().top + (Math.floor(cursor / columns) * unit) / scale;
    if (height < 0) window.scrollBy(0, height - 40);
    else if (height + 20 > window.innerHeight) window.scrollBy(0, height + 40 - window.innerHeight);
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
  document.addEventListener("headrace:theme", () => (makePictures(), drawAll()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (makePictures(), drawAll()));
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.round(entry.contentRect.width) === width && scale === (window.devicePixelRatio || 1)) return;
    width = Math.round(entry.contentRect.width);
    layOut();
  }).observe(canvas.parentElement);
}
