// The graph: which arrows are visible, what is chosen, and the details beside it.

const functions = new Map(payload.functions.map((one) => [`${one.source}-${one.target}`, one]));
const effectOf = new Map(payload.effects.map((one) => [`${one.cause}-${one.outcome}`, one]));
const bends = new Map(payload.bends.map(([i, j, points]) => [`${i}-${j}`, points]));
let cy = null;
let threshold = 0.5;
let chosen = null;

function isCompelled(i, j) {
  return compelled[i][j] >= edge[i][j] / 2;
}

function graphStyle() {
  return [
    {
      selector: "node",
      style: {
        shape: "round-rectangle", width: "data(width)", height: 32, label: "data(label)",
        "text-valign": "center", "text-halign": "center", "font-size": 14, color: colour("ink"),
        "background-color": colour("node"), "border-width": 1.2, "border-color": colour("node-line"),
        "font-family": "system-ui, sans-serif", "text-max-width": "230px", "text-wrap": "ellipsis",
      },
    },
    { selector: "node.context", style: { shape: "ellipse", "background-color": colour("paper"), "border-style": "dotted" } },
    { selector: "node.misfit", style: { "border-color": colour("red"), "border-width": 2.4, "border-style": "dashed" } },
    {
      selector: "edge",
      style: {
        "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 1.1,
        width: "data(weight)", opacity: "data(opacity)",
        "line-color": colour("blue"), "target-arrow-color": colour("blue"),
      },
    },
    {
      selector: "edge.bent",
      style: {
        "curve-style": "round-segments", "segment-weights": "data(weights)",
        "segment-distances": "data(distances)", "segment-radii": 40, "edge-distances": "node-position",
      },
    },
    { selector: "edge.free", style: { "line-style": "dashed", "line-dash-pattern": [7, 4], "line-color": colour("amber"), "target-arrow-color": colour("amber") } },
    { selector: ".away", style: { display: "none" } },
    { selector: ".faded", style: { opacity: 0.2 } },
    { selector: "node.near", style: { "border-width": 2.4, "border-color": colour("blue") } },
    { selector: "node.chosen", style: { "background-color": colour("chosen"), "border-width": 2.6, "border-color": colour("ink") } },
    { selector: "edge.chosen", style: { "line-color": colour("red"), "target-arrow-color": colour("red"), opacity: 1 } },
    { selector: "node.found", style: { "background-color": colour("chosen") } },
  ];
}

function bendData(i, j) {
  // Points through which an arrow runs, relative to the line between its ends.
  const points = bends.get(`${i}-${j}`);
  if (!points) return {};
  const [from, to] = [payload.places[i], payload.places[j]];
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy) || 1;
  const weights = [];
  const distances = [];
  for (let k = 0; k < points.length; k += 2) {
    const [px, py] = [points[k] - from[0], points[k + 1] - from[1]];
    weights.push(((px * dx + py * dy) / (length * length)).toFixed(4));
    distances.push(((py * dx - px * dy) / length).toFixed(1));
  }
  return { weights: weights.join(" "), distances: distances.join(" ") };
}

function graphElements() {
  const nodes = names.map((label, i) => ({
    group: "nodes",
    data: { id: `n${i}`, node: i, label: clipped(label, 28), width: 24 + 8.4 * Math.min(label.length, 28) },
    position: { x: payload.places[i][0], y: payload.places[i][1] },
    classes: [payload.misfits.includes(i) ? "misfit" : "", payload.contexts.includes(i) ? "context" : ""].join(" "),
  }));
  const thinness = names.length > 40 ? 0.55 : 1; // many arrows need room
  const edges = payload.edge
    .filter(([, , p]) => p >= 0.01)
    .map(([i, j, p]) => ({
      group: "edges",
      data: { id: `e${i}-${j}`, source: `n${i}`, target: `n${j}`, i, j, p, weight: (1 + 4.5 * p) * thinness, opacity: 0.25 + 0.7 * p, ...bendData(i, j) },
      classes: [p < threshold ? "away" : "", isCompelled(i, j) ? "compelled" : "free", bends.has(`${i}-${j}`) ? "bent" : ""].join(" "),
    }));
  return [...nodes, ...edges];
}

function startGraph() {
  cy = cytoscape({
    container: byId("cy"),
    elements: graphElements(),
    style: graphStyle(),
    layout: { name: "preset", padding: 24 },
    minZoom: 0.05,
    maxZoom: 3,
    autounselectify: true,
    boxSelectionEnabled: false,
  });
  window.cy = cy; // for those who want to go on from the console, and for tests
  cy.on("tap", "node", (event) => choose({ node: event.target.data("node") }));
  cy.on("tap", "edge", (event) => choose({ edge: [event.target.data("i"), event.target.data("j")] }));
  cy.on("tap", (event) => {
    if (event.target === cy) choose(null);
  });
  cy.on("mouseover", "node, edge", (event) => hint(event.target));
  cy.on("mouseout", "node, edge", () => hint(null));
  fitGraph();
  setUserZoom();
  showCount();
}

function fitGraph() {
  // Few variables are not blown up to fill the place.
  cy.fit(undefined, 24);
  if (cy.zoom() > 1.3) {
    cy.zoom(1.3);
    cy.center();
  }
}

function hint(target) {
  // Names are too small to read when the whole of a large graph is in view.
  const words = !target ? "" : target.isNode() ? names[target.data("node")] : `${arrow(target.data("i"), target.data("j"))}: ${probability(target.data("p"))}`;
  byId("hint").textContent = words;
  byId("hint").hidden = !words;
}

function setUserZoom() {
  // The wheel scrolls the page until the graph is focused.
  cy.userZoomingEnabled(false);
  byId("cy").addEventListener("focusin", () => cy.userZoomingEnabled(true));
  byId("cy").addEventListener("focusout", () => cy.userZoomingEnabled(false));
  byId("cy").addEventListener("pointerdown", () => byId("cy").focus({ preventScroll: true }));
}

function setThreshold(value) {
  threshold = value;
  byId("threshold-value").textContent = value.toFixed(2);
  cy.batch(() => cy.edges().forEach((one) => one.toggleClass("away", one.data("p") < value)));
  highlight();
  showCount();
}

function showCount() {
  const visible = cy.edges().filter((one) => !one.hasClass("away"));
  const free = visible.filter(".free").length;
  byId("visible-count").textContent = `${visible.length} arrow${visible.length === 1 ? "" : "s"}, ${free} of free direction`;
}

function choose(what) {
  chosen = what;
  highlight();
  showDetails();
}

function highlight() {
  cy.batch(() => {
    cy.elements().removeClass("chosen near faded");
    if (!chosen) return;
    const centre = chosen.edge ? cy.getElementById(`e${chosen.edge[0]}-${chosen.edge[1]}`) : cy.getElementById(`n${chosen.node}`);
    const visible = cy.edges().filter((one) => !one.hasClass("away"));
    const links = chosen.edge ? centre : centre.connectedEdges().intersection(visible);
    const ends = chosen.edge ? cy.collection([cy.getElementById(`n${chosen.edge[0]}`), cy.getElementById(`n${chosen.edge[1]}`)]) : links.connectedNodes();
    cy.elements().difference(links.union(ends).union(centre)).addClass("faded");
    if (chosen.edge) centre.removeClass("away");
    ends.addClass("near");
    centre.addClass("chosen");
  });
}

function nodeButton(i) {
  return element("button", { type: "button", class: "link", on: { click: () => choose({ node: i }) } }, names[i]);
}

function edgeButton(i, j) {
  return element("button", { type: "button", class: "link", on: { click: () => choose({ edge: [i, j] }) } }, arrow(i, j));
}

function showDetails() {
  const home = byId("details");
  if (!chosen) {
    home.replaceChildren(element("p", { class: "empty" }, "Nothing is chosen yet. Click on a variable or an arrow."));
  } else if (chosen.edge) {
    home.replaceChildren(...edgeDetails(...chosen.edge));
  } else {
    home.replaceChildren(...nodeDetails(chosen.node));
  }
  home.scrollTop = 0;
}

function ranked(score, least, most) {
  return names
    .map((_, k) => [k, score(k)])
    .filter(([, p]) => p >= least)
    .sort((a, b) => b[1] - a[1])
    .slice(0, most);
}

function listing(title, pairs, button, none) {
  if (!pairs.length) return element("p", { class: "note" }, `${title}: ${none}.`);
  return element(
    "table", {},
    element("caption", { class: "hidden" }, title),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, title), element("th", { scope: "col", class: "number" }, "probability"))),
    element("tbody", {}, ...pairs.map(([k, p]) => element("tr", {}, element("td", {}, button(k)), element("td", { class: "number" }, probability(p))))),
  );
}

function nodeDetails(i) {
  const column = payload.columns[i];
  const effects = payload.effects.filter((one) => one.cause === i).slice(0, 6);
  return [
    element("h3", {}, names[i]),
    element("p", { class: "note" }, `${column.kind}; mean ${figure(column.mean)}, sd ${figure(column.sd)}, ${figure(column.low)} to ${figure(column.high)}; ${column.assumption}.`),
    listing("Direct causes", ranked((k) => edge[k][i], 0.05, 12), (k) => edgeButton(k, i), "none above 0.05"),
    listing("Direct effects", ranked((k) => edge[i][k], 0.05, 12), (k) => edgeButton(i, k), "none above 0.05"),
    listing("Causes, direct or not", ranked((k) => (k === i ? 0 : path[k][i]), 0.05, 12), nodeButton, "none above 0.05"),
    listing("Markov blanket", ranked((k) => blanket[i][k], 0.05, 12), nodeButton, "empty"),
    effects.length ? effectList(effects) : element("p", { class: "note" }, "No precomputed effect of this variable."),
  ];
}

function effectList(effects) {
  return element(
    "table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Effect of setting it, on"), element("th", { scope: "col", class: "number" }, "mean"), element("th", { scope: "col", class: "number" }, "95 % HDI"))),
    element("tbody", {}, ...effects.map((one) => element("tr", {},
      element("td", {}, nodeButton(one.outcome)),
      element("td", { class: "number" }, figure(one.mean)),
      element("td", { class: "number" }, `${figure(one.hdi[0])} to ${figure(one.hdi[1])}`)))),
  );
}

function edgeDetails(i, j) {
  const none = Math.max(0, 1 - edge[i][j] - edge[j][i]);
  const facts = [
    [arrow(i, j), edge[i][j]],
    ["its direction compelled", compelled[i][j]],
    [arrow(j, i), edge[j][i]],
    ["no arrow between them", none],
    [`a path ${arrow(i, j)}`, path[i][j]],
  ];
  const one = functions.get(`${i}-${j}`);
  const effect = effectOf.get(`${i}-${j}`);
  return [
    element("h3", {}, arrow(i, j)),
    element("table", {}, element("caption", { class: "hidden" }, "Probabilities"), element("tbody", {}, ...facts.map(([what, p]) =>
      element("tr", {}, element("th", { scope: "row" }, what), element("td", { class: "number" }, probability(p)))))),
    element("p", {}, "Ends: ", nodeButton(i), " ", nodeButton(j)),
    one ? functionFigure(one) : element("p", { class: "note" }, "No function is shown: the arrow is improbable, or not among those precomputed."),
    effect ? element("p", {}, effect.words) : null,
  ];
}

function functionFigure(one) {
  const home = element("div", {}, functionChart(one, false));
  const words = payload.rows
    ? `Mean of ${names[one.target]} given ${names[one.source]}, other parents at their means; 90 % credible band; points are partial residuals.`
    : `Mean of ${names[one.target]} given ${names[one.source]}, other parents at their means; 90 % credible band. This file carries no rows.`;
  const box = element("input", { type: "checkbox", id: "raw", on: { change: () => home.replaceChildren(functionChart(one, box.checked)) } });
  return element("figure", {}, element("figcaption", {}, words), home, payload.rows ? element("label", { for: "raw", class: "note" }, box, " measured values instead of partial residuals") : null);
}

function find(text) {
  const wanted = text.trim().toLowerCase();
  const hits = wanted ? names.map((_, i) => i).filter((i) => names[i].toLowerCase().includes(wanted)) : [];
  cy.batch(() => {
    cy.nodes().removeClass("found");
    hits.forEach((i) => cy.getElementById(`n${i}`).addClass("found"));
  });
  const exact = hits.find((i) => names[i].toLowerCase() === wanted);
  const one = exact !== undefined ? exact : hits.length === 1 ? hits[0] : null;
  if (one !== null) goTo(one);
  return hits;
}

function goTo(i) {
  choose({ node: i });
  const node = cy.getElementById(`n${i}`);
  cy.zoom(Math.max(cy.zoom(), 0.75));
  cy.center(node);
}

function relayout(kind) {
  cy.edges("[weights]").toggleClass("bent", kind === "layers");
  if (kind === "layers") {
    cy.nodes().positions((node) => ({ x: payload.places[node.data("node")][0], y: payload.places[node.data("node")][1] }));
    fitGraph();
    return;
  }
  const shown = cy.elements().filter((one) => one.isNode() || !one.hasClass("away"));
  const settings = kind === "force"
    ? { name: "cose", animate: false, randomize: false, nodeRepulsion: () => 40000, idealEdgeLength: () => 90, padding: 24 }
    : { name: "circle", animate: false, padding: 24 };
  shown.layout(settings).run();
}

function moveChoice(dx, dy) {
  const now = chosen && chosen.node !== undefined ? cy.getElementById(`n${chosen.node}`) : null;
  if (!now) {
    goTo(Number(cy.nodes().min((one) => one.position("y") * 1e4 + one.position("x")).ele.data("node")));
    return;
  }
  const from = now.position();
  const best = cy.nodes().min((other) => {
    const along = (other.position("x") - from.x) * dx + (other.position("y") - from.y) * dy;
    const across = Math.abs((other.position("x") - from.x) * dy) + Math.abs((other.position("y") - from.y) * dx);
    return other === now || other.id() === now.id() || along < 1 ? Infinity : along + 2.5 * across;
  });
  if (best.value < Infinity) {
    choose({ node: best.ele.data("node") });
    keepInView(best.ele);
  }
}

function keepInView(node) {
  const box = node.renderedBoundingBox();
  if (box.x1 < 0 || box.y1 < 0 || box.x2 > cy.width() || box.y2 > cy.height()) cy.center(node);
}

function zoomBy(factor) {
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}

function graphKeys(event) {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (moves[event.key]) moveChoice(...moves[event.key]);
  else if (event.key === "+" || event.key === "=") zoomBy(1.25);
  else if (event.key === "-") zoomBy(0.8);
  else if (event.key === "Escape") choose(null);
  else if (event.key === "Enter" && chosen) focusDetails();
  else return;
  event.preventDefault();
}

function focusDetails() {
  const first = byId("details").querySelector("button");
  if (first) first.focus();
}

function savePicture() {
  const link = element("a", { href: cy.png({ full: true, scale: 2, bg: colour("paper") }), download: "graph.png" });
  document.body.append(link);
  link.click();
  link.remove();
}

function wireGraph() {
  startGraph();
  byId("names").append(...names.map((name) => element("option", { value: name })));
  byId("threshold").addEventListener("input", (event) => setThreshold(Number(event.target.value)));
  byId("search").addEventListener("input", (event) => find(event.target.value));
  byId("layout").addEventListener("change", (event) => relayout(event.target.value));
  byId("zoom-in").addEventListener("click", () => zoomBy(1.25));
  byId("zoom-out").addEventListener("click", () => zoomBy(0.8));
  byId("fit").addEventListener("click", fitGraph);
  byId("picture").addEventListener("click", savePicture);
  byId("cy").addEventListener("keydown", graphKeys);
}
