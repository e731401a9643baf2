// Small drawings: functions with bands, effect histograms, traces and ranks.

function ticks(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [low];
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) {
    found.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  }
  return found;
}

function frame(width, height, xs, ys, labels) {
  const margin = { left: 52, right: 10, top: 8, bottom: labels.x ? 38 : 22 };
  const span = (range) => (range[1] > range[0] ? range[1] - range[0] : 1);
  const x = (v) => margin.left + ((v - xs[0]) / span(xs)) * (width - margin.left - margin.right);
  const y = (v) => height - margin.bottom - ((v - ys[0]) / span(ys)) * (height - margin.top - margin.bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": labels.alt });
  for (const t of labels.bare ? [] : ticks(ys[0], ys[1], 4)) {
    svg.append(
      drawn("line", { class: "gridline", x1: margin.left, x2: width - margin.right, y1: y(t), y2: y(t) }),
      drawn("text", { x: margin.left - 5, y: y(t) + 4, "text-anchor": "end" }, figure(t, 4)),
    );
  }
  for (const t of ticks(xs[0], xs[1], 5)) {
    svg.append(drawn("text", { x: x(t), y: height - margin.bottom + 14, "text-anchor": "middle" }, figure(t, 4)));
  }
  svg.append(drawn("path", { class: "axis", d: `M${margin.left} ${margin.top}V${height - margin.bottom}H${width - margin.right}` }));
  if (labels.x) svg.append(drawn("text", { x: (margin.left + width) / 2, y: height - 5, "text-anchor": "middle" }, clipped(labels.x, 48)));
  return { svg, x, y };
}

function clipped(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (v === null) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

function padded([low, high]) {
  const more = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - more, high + more];
}

function line(xs, ys, at) {
  return xs.map((v, k) => `${k ? "L" : "M"}${at.x(v).toFixed(1)} ${at.y(ys[k]).toFixed(1)}`).join("");
}

function functionChart(one, raw) {
  const column = payload.columns[one.source];
  const count = one.mean.length;
  const xs = one.mean.map((_, k) => column.low + ((column.high - column.low) * k) / (count - 1));
  const points = payload.rows
    ? one.rows.map((r, k) => [payload.rows[one.source][r], raw ? payload.rows[one.target][r] : one.points[k]])
    : [];
  const range = padded(extent([...one.low, ...one.high, ...points.map((p) => p[1])]));
  const at = frame(340, 230, [column.low, column.high], range, {
    x: names[one.source],
    alt: `Mean of ${names[one.target]} along ${names[one.source]}, with a 90 % credible band`,
  });
  for (const [a, b] of points) at.svg.append(drawn("circle", { class: "point", cx: at.x(a).toFixed(1), cy: at.y(b).toFixed(1), r: 1.8 }));
  const back = [...xs].reverse();
  const area = `${line(xs, one.high, at)}L${line(back, [...one.low].reverse(), at).slice(1)}Z`;
  at.svg.append(drawn("path", { class: "band", d: area }), drawn("path", { class: "mean", d: line(xs, one.mean, at) }));
  return at.svg;
}

function effectChart(one) {
  if (!one.counts.length) return null;
  const xs = padded(extent([...one.ends, 0]));
  const at = frame(420, 240, xs, [0, 1.05], {
    x: `change of ${names[one.outcome]}`,
    bare: true,
    alt: `Posterior density of the effect of ${names[one.cause]} on ${names[one.outcome]}, where there is one`,
  });
  one.counts.forEach((height, k) => {
    const left = at.x(one.ends[k]);
    at.svg.append(
      drawn("rect", { class: "bar", x: left, width: Math.max(at.x(one.ends[k + 1]) - left - 0.5, 0.5), y: at.y(height), height: at.y(0) - at.y(height) }),
    );
  });
  at.svg.append(drawn("line", { class: "zero", x1: at.x(0), x2: at.x(0), y1: at.y(0), y2: at.y(1.05) }));
  return at.svg;
}

function traceChart(trace) {
  const chains = payload.chains;
  const range = padded(extent(trace.values.flat()));
  const at = frame(460, 190, [1, chains.draws[chains.draws.length - 1] || 2], range, {
    x: "draw",
    alt: `Trace of ${trace.name} along ${chains.chains.length} chains`,
  });
  trace.values.forEach((values, c) => {
    const one = drawn("path", { class: "line", d: line(chains.draws, values, at) });
    one.style.stroke = `var(--c${(c % 8) + 1})`;
    at.svg.append(one);
  });
  return at.svg;
}

function rankChart(trace) {
  const chains = payload.chains.chains;
  const rowHeight = 34;
  const height = chains.length * rowHeight + 26;
  const top = Math.max(2, ...trace.ranks.flat());
  const svg = drawn("svg", { viewBox: `0 0 460 ${height}`, role: "img", "aria-label": `Ranks of ${trace.name}, chain by chain` });
  trace.ranks.forEach((counts, c) => {
    const base = (c + 1) * rowHeight;
    const width = 390 / counts.length;
    svg.append(drawn("text", { x: 48, y: base - 6, "text-anchor": "end" }, `chain ${chains[c]}`));
    counts.forEach((count, k) => {
      const size = (count / top) * (rowHeight - 6);
      const bar = drawn("rect", { x: 54 + k * width, width: width - 1, y: base - size, height: size });
      bar.style.fill = `var(--c${(c % 8) + 1})`;
      svg.append(bar);
    });
    const even = base - (1 / top) * (rowHeight - 6);
    svg.append(drawn("line", { class: "zero", x1: 54, x2: 444, y1: even, y2: even }));
  });
  svg.append(drawn("text", { x: 250, y: height - 6, "text-anchor": "middle" }, "rank among all draws (dashed: even)"));
  return svg;
}

function drawChains() {
  const home = byId("traces");
  const { chains, traces } = payload.chains;
  for (const trace of traces.slice(0, 4)) {
    home.append(element("figure", {}, element("figcaption", {}, `Trace of ${trace.name}, ${chains.length} chain${chains.length > 1 ? "s" : ""}`), traceChart(trace)));
    if (trace.ranks.length) {
      home.append(element("figure", {}, element("figcaption", {}, `Rank plot of ${trace.name}`), rankChart(trace)));
    }
  }
  if (!traces.length) home.append(element("p", { class: "note" }, "Nothing varies among the draws, so there is no trace to show."));
  if (traces.length && !traces[0].ranks.length) {
    home.append(element("p", { class: "note" }, "Rank plots compare several chains of at least 40 draws; this result has none to compare."));
  }
}
