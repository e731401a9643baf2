// Effects: a cause and an outcome are chosen; the strongest pairs were computed beforehand.

function option(i, text) {
  return element("option", { value: i }, text || names[i]);
}

function fillOutcomes() {
  const cause = Number(byId("cause").value);
  const own = payload.effects.filter((one) => one.cause === cause);
  const known = new Set(own.map((one) => one.outcome));
  const rest = names.map((_, i) => i).filter((i) => i !== cause && !known.has(i));
  const groups = [
    element("optgroup", { label: "computed" }, ...own.map((one) => option(one.outcome))),
    element("optgroup", { label: "others" }, ...rest.map((i) => option(i))),
  ];
  byId("outcome").replaceChildren(...groups.filter((group) => group.children.length));
  drawEffect();
}

function drawEffect() {
  const cause = Number(byId("cause").value);
  const outcome = Number(byId("outcome").value);
  const one = effectOf.get(`${cause}-${outcome}`);
  byId("effect").replaceChildren(...(one ? effectParts(one) : missingParts(cause, outcome)));
}

function quoted(text) {
  return /^[\w.@%+=:,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function missingParts(cause, outcome) {
  const p = path[cause][outcome];
  const words = p < 0.05
    ? `With probability ${probability(1 - p)} no path leads from ${names[cause]} to ${names[outcome]}, so there is no effect to speak of.`
    : `A path leads from ${names[cause]} to ${names[outcome]} with probability ${probability(p)}. This effect was not computed beforehand; ask for it:`;
  const command = `bayesdag effect ${quoted(payload.result)} --cause ${quoted(names[cause])} --outcome ${quoted(names[outcome])}`;
  return [element("p", {}, words), element("pre", { tabindex: 0 }, command)];
}

function effectParts(one) {
  const facts = [
    ["mean change", figure(one.mean)],
    ["standard deviation", figure(one.sd)],
    ["95 % HDI", `${figure(one.hdi[0])} to ${figure(one.hdi[1])}`],
    ["P(effect > 0)", probability(one.positive)],
    ["P(effect < 0)", probability(one.negative)],
    ["P(no directed path)", probability(one.no_path)],
    ["variance due to the graph", one.structural === null ? "–" : `${Math.round(100 * one.structural)} %`],
  ];
  const chart = effectChart(one);
  return [
    element("p", {}, one.words),
    element("div", { class: "effect" },
      chart ? element("figure", {}, element("figcaption", {}, "Density among the graphs with a path; the dashed line is no effect"), chart) : element("p", { class: "note" }, "The effect hardly varies among the draws."),
      element("table", {}, element("caption", { class: "hidden" }, "Effect in numbers"), element("tbody", {}, ...facts.map(([what, value]) =>
        element("tr", {}, element("th", { scope: "row" }, what), element("td", { class: "number" }, value)))))),
  ];
}

function wireEffects() {
  const causes = [...new Set(payload.effects.map((one) => one.cause))];
  const rest = names.map((_, i) => i).filter((i) => !causes.includes(i));
  const groups = [
    element("optgroup", { label: "with computed effects" }, ...causes.map((i) => option(i))),
    element("optgroup", { label: "others" }, ...rest.map((i) => option(i))),
  ];
  byId("cause").append(...groups.filter((group) => group.children.length));
  byId("cause").addEventListener("change", fillOutcomes);
  byId("outcome").addEventListener("change", drawEffect);
  fillOutcomes();
}
