// Tables of pairs: sorted by any heading, searched, shown a page at a time.

const PAGE = 25;
const table = { kind: "edges", sort: 2, descending: true, shown: PAGE, search: "" };

const KINDS = {
  edges: {
    headings: ["cause", "effect", "probability", "compelled", "reversed"],
    rows: () => payload.edge.map(([i, j, p]) => [i, j, p, compelled[i][j], edge[j][i]]),
  },
  paths: {
    headings: ["cause", "effect", "path", "direct"],
    rows: () => payload.path.filter(([i, j]) => i !== j).map(([i, j, p]) => [i, j, p, edge[i][j]]),
  },
  blankets: {
    headings: ["one", "other", "probability"],
    rows: () => payload.blanket.map(([i, j, p]) => [i, j, p]),
  },
};

function tableRows() {
  const wanted = table.search.trim().toLowerCase();
  const sign = table.descending ? -1 : 1;
  const at = table.sort;
  const rows = KINDS[table.kind].rows().filter(([i, j]) => !wanted || arrow(i, j).toLowerCase().includes(wanted));
  const value = (row) => (at < 2 ? names[row[at]] : row[at]);
  const compare = (a, b) => (at < 2 ? value(a).localeCompare(value(b)) : value(a) - value(b));
  return rows.sort((a, b) => sign * compare(a, b) || b[2] - a[2]);
}

function drawTable() {
  const rows = tableRows();
  const { headings } = KINDS[table.kind];
  const head = headings.map((words, k) =>
    element("th", { scope: "col", class: k < 2 ? "" : "number", "aria-sort": k === table.sort ? (table.descending ? "descending" : "ascending") : "none" },
      element("button", { type: "button", on: { click: () => sortTable(k) } }, words)));
  const body = rows.slice(0, table.shown).map((row) => {
    const [i, j, ...rest] = row;
    return element("tr", {},
      element("td", {}, table.kind === "edges" ? element("button", { type: "button", class: "link", "aria-label": `Show ${arrow(i, j)} in the graph`, on: { click: () => showInGraph({ edge: [i, j] }) } }, names[i]) : names[i]),
      element("td", {}, names[j]),
      ...rest.map((p) => element("td", { class: "number" }, probability(p))));
  });
  const parts = [element("table", {}, element("caption", { class: "hidden" }, table.kind), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))];
  if (rows.length > table.shown) {
    parts.push(element("button", { type: "button", id: "more", on: { click: () => { table.shown += 4 * PAGE; drawTable(); } } }, `Show more (${rows.length - table.shown} left)`));
  }
  byId("table-panel").replaceChildren(...parts);
  byId("table-count").textContent = `${rows.length} of ${KINDS[table.kind].rows().length} pairs`;
}

function showInGraph(what) {
  choose(what);
  byId("graph").scrollIntoView();
  byId("cy").focus({ preventScroll: true });
}

function sortTable(at) {
  table.descending = table.sort === at ? !table.descending : at >= 2;
  table.sort = at;
  drawTable();
  byId("table-panel").querySelectorAll("th button")[at].focus();
}

function openTab(kind) {
  Object.assign(table, { kind, sort: 2, descending: true, shown: PAGE });
  for (const tab of document.querySelectorAll("[role='tab']")) {
    const own = tab.id === `tab-${kind}`;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
  }
  byId("table-panel").setAttribute("aria-labelledby", `tab-${kind}`);
  drawTable();
}

function tabKeys(event) {
  const kinds = Object.keys(KINDS);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const next = kinds[(kinds.indexOf(table.kind) + step + kinds.length) % kinds.length];
  openTab(next);
  byId(`tab-${next}`).focus();
  event.preventDefault();
}

function makeSortable(home) {
  home.querySelectorAll("thead th").forEach((cell, k) => {
    const words = cell.textContent;
    const button = element("button", { type: "button" }, words);
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = cell.getAttribute("aria-sort") !== "ascending";
      home.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = home.querySelector("tbody");
      const text = (row) => row.children[k].textContent.trim();
      const rows = [...body.children].sort((a, b) => {
        const [x, y] = [Number(text(a)), Number(text(b))];
        const order = Number.isNaN(x) || Number.isNaN(y) ? text(a).localeCompare(text(b)) : x - y;
        return up ? order : -order;
      });
      body.replaceChildren(...rows);
    });
  });
}

function wireTables() {
  for (const kind of Object.keys(KINDS)) {
    byId(`tab-${kind}`).addEventListener("click", () => openTab(kind));
    byId(`tab-${kind}`).addEventListener("keydown", tabKeys);
  }
  byId("table-search").addEventListener("input", (event) => {
    table.search = event.target.value;
    table.shown = PAGE;
    drawTable();
  });
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  drawTable();
}
