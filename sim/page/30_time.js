/* States, requests and events of a run over time. */

const STATES = DATA.state_names;

function labelOf(detail) {
  return DATA.runs[detail.run].label;
}

function noteRows(what, detail, rows, perPoint) {
  if (perPoint > 1) {
    notes.push(labelOf(detail) + ": " + what + ": " + counted(rows, "row") + " of the file, " + perPoint +
      " to a point. A point shows their mean over time, and in brackets the smallest and the largest of them.");
  }
}

/* The end of the last interval as a point of its own, so that its step has a width. */
function timeAxis(starts, end) {
  const seconds = starts.map(t => t / 1e9), last = end / 1e9;
  const values = last > seconds[seconds.length - 1] ? [...seconds, last] : seconds;
  return { name: "from", values, steps: true, text: v => secondsText(v * 1e9), tick: timeTick };
}

function padded(values, axis) {
  return values.length < axis.values.length ? [...values, values[values.length - 1]] : values;
}

function valueSeries(name, colorName, column, axis, more) {
  return { name, color: colorName, values: padded(column.mean, axis), min: column.min && padded(column.min, axis),
    max: column.max && padded(column.max, axis), ...more };
}

function statesPlot(parent, detail, unit) {
  const t = detail.timeline, axis = timeAxis(t.time_ns, t.end_ns), pool = DATA.runs[detail.run].pool_bytes;
  const share = unit === "share", scaled = v => share ? v / pool : v;
  const column = c => ({ mean: c.mean.map(scaled), min: c.min && c.min.map(scaled), max: c.max && c.max.map(scaled) });
  const series = STATES.filter(s => t.values[s]).map(s => valueSeries(s, "s-" + s, column(t.values[s]), axis));
  return new Plot(parent, {
    id: "plot-states", title: "Where the pool’s bytes were", note: "Stacked; each step is the mean over its time.",
    x: axis, series, stacked: true, yText: share ? percentText : bytesText, yTick: share ? v => Math.round(100 * v) + " %" : bytesText, binary: !share,
    yMax: scaled(pool), group: "time", height: 320,
  });
}

function runningPlot(parent, detail) {
  const t = detail.timeline, axis = timeAxis(t.time_ns, t.end_ns);
  return new Plot(parent, { id: "plot-running", title: "Sequences that ran", x: axis, yText: plainNumber, group: "time", height: 200,
    series: [valueSeries("running", "c-1", t.values.running, axis)] });
}

function spansAxis(begin, width, count) {
  return timeAxis(Array.from({ length: count }, (v, i) => begin + i * width), begin + count * width);
}

function queuePlot(parent, detail) {
  const e = detail.events, axis = spansAxis(e.begin_ns, e.width_ns, e.waiting.max.length);
  const series = [["waiting", "c-0"], ["running", "c-1"]].map(([name, colorName]) =>
    ({ name, color: colorName, values: padded(e[name].max, axis), min: padded(e[name].min, axis), max: padded(e[name].max, axis) }));
  return new Plot(parent, { id: "plot-queue", title: "Requests that waited and ran", group: "time", height: 220, x: axis, series, yText: grouped,
    note: "Most of each " + secondsText(e.width_ns) + "; in brackets the fewest and the most." });
}

function eventsPlot(parent, detail) {
  const e = detail.events, axis = spansAxis(e.begin_ns, e.width_ns, e.waiting.max.length);
  const wanted = ["arrive", "admit", "refuse", "preempt", "swap_out", "evict", "copy", "fetch", "offload", "finish", "abort", "unservable", "reject"];
  const series = wanted.filter(k => e.counts[k]).map((k, i) =>
    ({ name: k, color: "c-" + i % 9, values: padded(e.counts[k], axis), hidden: !["arrive", "preempt", "refuse"].includes(k) }));
  return new Plot(parent, { id: "plot-events", title: "Events in each " + secondsText(e.width_ns), note: "The buttons switch kinds on and off.",
    group: "time", height: 220, x: axis, series, yText: grouped });
}

/* The value of each result at each time of any of them. */
function alignedPlot(parent, details, name) {
  const times = Array.from(new Set(details.flatMap(d => [...d.timeline.time_ns, d.timeline.end_ns]))).sort((a, b) => a - b);
  const pool = d => DATA.runs[d.run].pool_bytes;
  const axis = timeAxis(times, times[times.length - 1]);
  const colors = lineColors(details.map(labelOf));
  const series = details.map((d, k) => {
    const t = d.timeline, column = t.values[name], share = name !== "running";
    const at = which => times.map(time => {
      if (time < t.time_ns[0] || time >= t.end_ns) return null;
      return column ? column[which][indexAt(t.time_ns, time)] / (share ? pool(d) : 1) : 0;
    });
    return { name: labelOf(d), color: colors[k], values: at("mean") };
  });
  const share = name !== "running";
  return new Plot(parent, { id: "plot-together", title: name + " of every result", note: "The buttons switch results on and off.", group: "together", height: 280,
    x: axis, series, yText: v => share ? percentText(v) : plainNumber(v), yTick: v => share ? Math.round(100 * v) + " %" : plainNumber(v) });
}

function together(section, details) {
  if (details.length < 2) return;
  const names = [...STATES.filter(s => details.some(d => d.timeline.values[s])), "running"];
  const controls = el("div", { class: "controls" }), place = el("div");
  let plot = null;
  const show = name => {
    if (plot) plot.remove();
    plot = alignedPlot(place, details, name);
  };
  controls.append(choice("Compare", names.map(n => [n, n]), "live", show));
  section.append(controls, place);
  show(names.includes("live") ? "live" : "running");
}

function timeSection() {
  const details = DATA.details.filter(d => (d.timeline && d.timeline.time_ns.length > 0) || (d.events && d.events.rows > 0));
  if (details.length === 0) return;
  const section = reveal("time"), controls = el("div", { class: "controls" }), place = el("div");
  let shown = [], chosen = details[0], unit = "share";
  const show = () => {
    shown.forEach(p => p.remove());
    shown = [];
    if (chosen.timeline && chosen.timeline.time_ns.length > 0) shown.push(statesPlot(place, chosen, unit));
    if (chosen.events && chosen.events.rows > 0) shown.push(queuePlot(place, chosen), eventsPlot(place, chosen));
    else if (chosen.timeline) shown.push(runningPlot(place, chosen));
  };
  for (const d of details) {
    if (d.timeline) noteRows("timeline", d, d.timeline.rows, d.timeline.rows_per_point);
    if (d.events && d.events.rows > 0) notes.push(labelOf(d) + ": " + counted(d.events.rows, "event") + " counted in spans of " + secondsText(d.events.width_ns) + "; none is left out.");
  }
  together(section, details.filter(d => d.timeline && d.timeline.time_ns.length > 0));
  if (details.length > 1) controls.append(choice("Result", details.map((d, i) => [i, labelOf(d)]), 0, i => { chosen = details[i]; show(); }));
  controls.append(choice("Unit", [["share", "share of the pool"], ["bytes", "bytes"]], unit, u => { unit = u; show(); }));
  section.append(controls, place);
  show();
}
