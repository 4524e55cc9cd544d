/* Figures of several results: over an option that is a number, or as bars. */

const FIGURES = DATA.figure_names;
/* Rows of the table of all results. */
const ROWS_MAX = 2000;

function figureText(name, value) {
  if (value === null) return "–";
  if (name.includes("_ns")) return secondsText(value);
  if (/utilization|usage|fragmentation|waste|hit_rate|saving|index|\.time$/.test(name)) return percentText(value);
  return plainNumber(value);
}

function numericOptions() {
  return DATA.option_names.map((name, i) => ({ name, i })).filter(o => o.name !== "seed" &&
    DATA.runs.every(r => r.options[o.i] === null || typeof r.options[o.i] === "number") && new Set(DATA.runs.map(r => r.options[o.i]).filter(v => v !== null)).size > 1);
}

/* Results that differ in nothing but x and the seed make one line. */
function linesOver(x) {
  const lines = new Map();
  for (const run of DATA.runs) {
    if (run.options[x.i] === null) continue;
    const rest = DATA.option_names.map((n, i) => [n, run.options[i]]).filter(([n, v]) => n !== x.name && n !== "seed" && v !== null);
    const key = JSON.stringify(rest);
    if (!lines.has(key)) lines.set(key, { rest, runs: new Map() });
    const at = lines.get(key).runs;
    if (!at.has(run.options[x.i])) at.set(run.options[x.i], []);
    at.get(run.options[x.i]).push(run);
  }
  return Array.from(lines.values());
}

/* What of the options tells the lines apart. Options that only one policy has say nothing unless its own lines differ in them. */
function lineName(line, all) {
  const of = (l, name) => { const found = l.rest.find(([n]) => n === name); return found ? found[1] : null; };
  const others = all.filter(o => o !== line), twins = others.filter(o => of(o, "policy") === of(line, "policy"));
  const telling = line.rest.filter(([n, v]) => n === "policy" ? others.some(o => of(o, n) !== v) : twins.some(o => of(o, n) !== v));
  return telling.map(([n, v]) => n === "policy" ? v : n + "=" + v).join(", ") || "all";
}

/* The built-in policies have the colours that they have in the other figures; other lines go by order. */
const POLICY_COLORS = { static: "c-0", "static-paged": "c-4", jemalloc: "c-3", dynamic: "c-5", prefix: "c-1", ideal: "c-2" };

function lineColors(names) {
  return names.every(n => n in POLICY_COLORS) ? names.map(n => POLICY_COLORS[n]) : names.map((n, k) => "c-" + k % 9);
}

function comparisonPlot(parent, x, figure) {
  const f = FIGURES.indexOf(figure), lines = linesOver(x);
  const xs = Array.from(new Set(DATA.runs.map(r => r.options[x.i]).filter(v => v !== null))).sort((a, b) => a - b);
  const log2 = xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 8;
  const names = lines.map(line => lineName(line, lines)), colors = lineColors(names);
  const series = lines.map((line, k) => {
    const values = xs.map(v => (line.runs.get(v) || []).map(r => r.figures[f]).filter(y => y !== null));
    const replicated = values.some(v => v.length > 1);
    const mean = v => v.length ? v.reduce((a, b) => a + b, 0) / v.length : null;
    return { name: names[k], color: colors[k], values: values.map(mean), hidden: k >= 18,
      ...(replicated ? { min: values.map(v => v.length ? Math.min(...v) : null), max: values.map(v => v.length ? Math.max(...v) : null) } : {}) };
  });
  return new Plot(parent, {
    id: "plot-compare", title: figure + " by " + x.name, height: 320,
    note: series.some(s => s.min) ? "Mean over seeds; in brackets the smallest and the largest." : "The buttons switch lines on and off.",
    x: { name: x.name, values: xs, text: plainNumber, tick: v => v === null ? "" : plainNumber(v), log2, ticks: xs.length <= 12 ? xs : null },
    series, yText: v => figureText(figure, v), yTick: v => figureText(figure, v).replace(/\.?0+ (%|s|ms)$/, " $1"),
  });
}

function comparisonBars(parent, figure) {
  const f = FIGURES.indexOf(figure), most = Math.max(...DATA.runs.map(r => r.figures[f] || 0));
  const amount = run => {
    const bar = el("i", { "aria-hidden": "true" });
    bar.style.width = (most > 0 ? 100 * (run.figures[f] || 0) / most : 0) + "%";
    return bar;
  };
  const t = table(figure, [{ title: "result", cell: r => r.label }, { title: figure, num: true, cell: r => figureText(figure, r.figures[f]) },
    { title: el("span", { class: "visually-hidden" }, "as a bar"), cell: amount }], DATA.runs.slice(0, 200), { class: "bars" });
  for (const row of t.tBodies[0].rows) row.cells[2].className = "amount";
  parent.append(scrolling(t, figure));
}

/* Every figure of every result; made when it is opened. */
function allResults(present) {
  const details = el("details", {}, el("summary", {}, "All results with all figures as a table")), runs = DATA.runs.slice(0, ROWS_MAX);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const columns = [{ title: "result", cell: r => r.label }, ...present.map(name => {
      const f = FIGURES.indexOf(name);
      return { title: name, num: true, cell: r => figureText(name, r.figures[f]), sort: r => r.figures[f] ?? "–" };
    })];
    const caption = runs.length < DATA.runs.length ? "The first " + grouped(runs.length) + " of " + grouped(DATA.runs.length) + " results" : counted(runs.length, "result");
    details.append(scrolling(sortable(table(caption, columns, runs)), "All results", true));
  });
  return details;
}

function compareSection() {
  if (DATA.runs.length < 2) return;
  const section = reveal("compare"), controls = el("div", { class: "controls" }), place = el("div");
  const present = FIGURES.filter((n, f) => DATA.runs.some(r => r.figures[f] !== null && r.figures[f] !== 0));
  const xs = numericOptions(), bars = { name: "bars" };
  let plot = null, figure = present.includes("utilization") ? "utilization" : present[0];
  let x = xs.find(o => o.name === "block-size") || xs[0] || bars;
  const show = () => {
    if (plot) plot.remove();
    plot = null;
    place.textContent = "";
    if (x === bars) comparisonBars(place, figure);
    else plot = comparisonPlot(place, x, figure);
  };
  controls.append(choice("Figure", present.map(n => [n, n]), figure, n => { figure = n; show(); }));
  if (xs.length > 0) {
    controls.append(choice("over", [...xs.map((o, i) => [i, o.name]), [xs.length, "results, as bars"]], xs.indexOf(x), i => { x = xs[i] || bars; show(); }));
  }
  section.append(controls, place, allResults(present));
  show();
}
