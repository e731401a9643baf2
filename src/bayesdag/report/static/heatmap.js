// The heat map: one square per ordered pair, read by pointer or by arrow keys.

const heat = { kind: "edge", row: 0, column: 1, size: 16, left: 0, top: 0 };

function heatMatrix() {
  return heat.kind === "edge" ? edge : path;
}

function heatOrder() {
  // Causes first, as in the drawing of the graph.
  return names.map((_, i) => i).sort((a, b) => payload.places[a][1] - payload.places[b][1] || payload.places[a][0] - payload.places[b][0]);
}

function drawHeat() {
  const matrix = heatMatrix();
  const order = heatOrder();
  const d = names.length;
  heat.order = order;
  heat.size = Math.max(9, Math.min(40, Math.floor(760 / d)));
  const font = Math.min(14, heat.size);
  const longest = Math.min(24, Math.max(...names.map((name) => name.length)));
  heat.left = 10 + longest * font * 0.62;
  heat.top = 10 + longest * font * 0.62;
  const side = d * heat.size;
  const width = heat.left + side + 4;
  const svg = drawn("svg", {
    viewBox: `0 0 ${width} ${heat.top + side + 4}`, width, height: heat.top + side + 4, tabindex: 0, role: "application",
    "aria-label": "Heat map of probabilities; arrow keys move the cursor, Enter shows the arrow in the graph",
  });
  svg.style.fontSize = `${font}px`;
  svg.append(drawn("rect", { class: "axis", x: heat.left, y: heat.top, width: side, height: side }));
  order.forEach((i, r) => {
    const middle = heat.top + (r + 0.5) * heat.size;
    svg.append(drawn("text", { x: heat.left - 5, y: middle + font * 0.35, "text-anchor": "end" }, clipped(names[i], 24)));
    const x = heat.left + (r + 0.5) * heat.size;
    svg.append(drawn("text", { transform: `translate(${x + font * 0.35} ${heat.top - 5}) rotate(-90)` }, clipped(names[i], 24)));
    svg.append(drawn("rect", { class: "diagonal", x: heat.left + r * heat.size, y: heat.top + r * heat.size, width: heat.size, height: heat.size }));
    order.forEach((j, c) => {
      const p = i === j ? 0 : matrix[i][j];
      if (p >= 0.01) {
        svg.append(drawn("rect", { class: "cell", x: heat.left + c * heat.size, y: heat.top + r * heat.size, width: heat.size - 0.6, height: heat.size - 0.6, "fill-opacity": (0.06 + 0.94 * p).toFixed(2) }));
      }
    });
  });
  heat.cursor = drawn("rect", { class: "cursor", width: heat.size, height: heat.size });
  svg.append(heat.cursor);
  svg.addEventListener("pointermove", (event) => pointHeat(event, svg));
  svg.addEventListener("click", (event) => {
    pointHeat(event, svg);
    openHeat();
  });
  svg.addEventListener("keydown", heatKeys);
  byId("heat").replaceChildren(svg, heatLegend());
  moveHeat(heat.row, heat.column);
}

function heatLegend() {
  const svg = drawn("svg", { viewBox: "0 0 260 40", width: 260, height: 40, role: "img", "aria-label": "Darker is more probable, from 0 to 1" });
  for (let k = 0; k <= 10; k++) {
    svg.append(drawn("rect", { class: "cell", x: 10 + k * 20, y: 4, width: 20, height: 12, "fill-opacity": 0.06 + 0.094 * k }));
  }
  [0, 0.5, 1].forEach((p) => svg.append(drawn("text", { x: 20 + p * 200, y: 32, "text-anchor": "middle" }, String(p))));
  return svg;
}

function pointHeat(event, svg) {
  const box = svg.getBoundingClientRect();
  const scale = svg.viewBox.baseVal.width / box.width;
  const column = Math.floor(((event.clientX - box.left) * scale - heat.left) / heat.size);
  const row = Math.floor(((event.clientY - box.top) * scale - heat.top) / heat.size);
  if (row >= 0 && column >= 0 && row < names.length && column < names.length) moveHeat(row, column);
}

function moveHeat(row, column) {
  const last = names.length - 1;
  heat.row = Math.max(0, Math.min(last, row));
  heat.column = Math.max(0, Math.min(last, column));
  heat.cursor.setAttribute("x", heat.left + heat.column * heat.size);
  heat.cursor.setAttribute("y", heat.top + heat.row * heat.size);
  const i = heat.order[heat.row];
  const j = heat.order[heat.column];
  byId("heat-readout").textContent = i === j
    ? names[i]
    : `${arrow(i, j)}: arrow ${probability(edge[i][j])}, path ${probability(path[i][j])}; reversed arrow ${probability(edge[j][i])}`;
}

function heatKeys(event) {
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  if (moves[event.key]) moveHeat(heat.row + moves[event.key][0], heat.column + moves[event.key][1]);
  else if (event.key === "Enter") openHeat();
  else return;
  event.preventDefault();
}

function openHeat() {
  const i = heat.order[heat.row];
  const j = heat.order[heat.column];
  if (i === j) choose({ node: i });
  else if (edge[i][j] > 0) choose({ edge: [i, j] });
}

function wireHeat() {
  for (const box of document.querySelectorAll("input[name='heat']")) {
    box.addEventListener("change", () => {
      heat.kind = box.value;
      drawHeat();
    });
  }
  drawHeat();
}
