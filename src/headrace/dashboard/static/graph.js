// A drawn graph: states of its boxes as they come, a record of fixed length for each; see dashboard/run_graph.py.
"use strict";

for (const figure of document.querySelectorAll(".graph[data-record]")) {
  const length = Number(figure.dataset.record);
  const words = JSON.parse(figure.dataset.words);
  let text = "";

  figure.addEventListener("headrace:text", ({ detail }) => {
    const changed = new Set();
    if ("all" in detail) {
      text = detail.all;
      for (let box = 0; box * length < text.length; box++) changed.add(box);
    }
    for (const [place, part] of detail.set ?? []) {
      text = text.slice(0, place) + part + text.slice(place + part.length);
      for (let box = Math.floor(place / length); box * length < place + part.length; box++) changed.add(box);
    }
    const boxes = figure.querySelectorAll(".box");
    for (const box of changed) if (boxes[box]) show(boxes[box], text.slice(box * length, (box + 1) * length));
    mark(boxes);
  });

  function show(box, record) {
    const [state, word] = words[record[0]];
    const told = [word, record.slice(2).trim()].filter(Boolean);
    box.setAttribute("class", `box s-${state}${record[1] === "!" ? " critical" : ""}`);
    box.querySelector(".what").textContent = told.join(" · ");
    const title = box.querySelector("title");
    title.textContent = `${title.textContent.slice(0, title.textContent.lastIndexOf(": "))}: ${told.join(", ")}`;
  }

  // Lines of the critical path lead between neighbours on it.
  function mark(boxes) {
    const left = (box) => boxes[box].transform.baseVal[0].matrix.e;
    const path = [...boxes.keys()].filter((box) => text[box * length + 1] === "!").sort((one, other) => left(one) - left(other));
    const steps = new Set(path.slice(1).map((box, place) => `${path[place]} ${box}`));
    for (const line of figure.querySelectorAll("path[data-ends]")) line.classList.toggle("critical", steps.has(line.dataset.ends));
  }
}
