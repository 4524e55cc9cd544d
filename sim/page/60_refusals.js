/* Refusal episodes: sums by class and cause, over time, and the proof sum of a chosen one. */

function partsText(parts) {
  return Object.entries(parts).sort((a, b) => b[1] - a[1]).map(([c, b]) => c + " " + bytesText(b)).join(", ");
}

function groupTable(o) {
  const columns = [
    { title: "class", cell: g => g.class }, { title: "largest part", cell: g => g.primary },
    { title: "episodes", num: true, cell: g => grouped(g.episodes) }, { title: "missing, in all", num: true, cell: g => bytesText(g.shortfall_bytes) },
    { title: "mean duration", num: true, cell: g => secondsText(g.duration_ns / g.episodes) }, { title: "proof sums, added up", wide: true, cell: g => partsText(g.parts) },
  ];
  return scrolling(sortable(table("By class and largest part of the proof sum", columns, o.groups)), "Refusals by class and cause");
}

/* The arithmetic of one episode: parts that add up to what was missing. */
function proof(e) {
  const missing = Object.values(e.parts).reduce((a, b) => a + b, 0);
  const rows = Object.entries(e.parts).sort((a, b) => b[1] - a[1]);
  const words = { admission: "to be admitted", growth: "to grow", device: "of the device" }[e.kind];
  const t = table("Proof sum of episode " + e.number, [
    { title: "cause", cell: r => r[0] }, { title: "bytes", num: true, cell: r => grouped(r[1]) },
    { title: "share", num: true, cell: r => percentText(missing ? r[1] / missing : null) }, { title: "what it is", cell: r => DATA.cause_words[r[0]] }], rows);
  t.append(el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "missing"), el("td", { class: "num" }, grouped(missing)), el("td", { class: "num" }, "100.00 %"), el("td"))));
  return [
    el("p", {}, "At " + secondsText(e.start_ns) + " request ", el("code", {}, e.request), " asked for " + counted(e.ask, "unit") + " (" + bytesText(e.ask * e.unit_bytes) + ") " + words +
      "; " + grouped(e.a) + " could be had, so " + grouped(e.ask - e.a) + " were missing. Unallocated or evictable were " + grouped(e.e) +
      ", the longest free run was " + grouped(e.r) + ". It was tried " + counted(e.attempts, "time") + " and took " + secondsText(e.end_ns - e.start_ns) + "."),
    scrolling(t, "Proof sum"),
  ];
}

function episodeList(place, o) {
  const panel = el("div", { id: "proof", "aria-live": "polite" });
  const choose = (e, row) => {
    for (const other of row.parentElement.rows) other.removeAttribute("aria-selected");
    row.setAttribute("aria-selected", "true");
    panel.replaceChildren(...proof(e));
  };
  const columns = [
    { title: "episode", cell: e => el("button", { type: "button", class: "plain", "aria-controls": "proof", on: { click: event => choose(e, event.target.closest("tr")) } }, String(e.number)) },
    { title: "request", cell: e => e.request }, { title: "kind", cell: e => e.kind }, { title: "class", cell: e => e.class }, { title: "largest part", cell: e => e.primary },
    { title: "began", num: true, cell: e => secondsText(e.start_ns), sort: e => e.start_ns },
    { title: "took", num: true, cell: e => secondsText(e.end_ns - e.start_ns), sort: e => e.end_ns - e.start_ns },
    { title: "asked, units", num: true, cell: e => grouped(e.ask) }, { title: "missing, units", num: true, cell: e => grouped(e.ask - e.a) },
  ];
  const all = o.shown.length === o.episodes;
  const t = sortable(table(all ? "All episodes; the number shows its proof sum." : "The " + o.shown.length + " longest of " + grouped(o.episodes) + " episodes; the number shows its proof sum.", columns, o.shown));
  place.append(scrolling(t, "Episodes", true), panel);
  choose(o.shown[0], t.tBodies[0].rows[0]);
}

function refusalsOf(place, detail) {
  const o = detail["oom-log"], axis = spansAxis(0, o.width_ns, o.counts[DATA.class_names[0]].length);
  place.append(groupTable(o));
  const series = DATA.class_names.slice().reverse().filter(c => o.counts[c].some(n => n > 0))
    .map(c => ({ name: c, color: "k-" + c, values: padded(o.counts[c], axis) }));
  const plot = new Plot(place, { id: "plot-refusals", title: "Episodes that began in each " + secondsText(o.width_ns), group: "time", height: 200, x: axis, series, stacked: true, yText: grouped });
  episodeList(place, o);
  return plot;
}

function refusalsSection() {
  const details = DATA.details.filter(d => d["oom-log"] && d["oom-log"].episodes > 0), section = document.getElementById("refusals-detail");
  if (details.length === 0 || !section) return;
  const controls = el("div", { class: "controls" }), place = el("div");
  let plot = null;
  const show = i => {
    if (plot) plot.remove();
    place.textContent = "";
    plot = refusalsOf(place, details[i]);
  };
  for (const d of details) {
    const o = d["oom-log"];
    if (o.shown.length < o.episodes) notes.push(labelOf(d) + ": all " + grouped(o.episodes) + " refusal episodes are in the sums and counts; the list has the " + o.shown.length + " that lasted longest.");
  }
  section.append(el("h3", {}, "Episodes, one by one"));
  if (details.length > 1) controls.append(choice("Result", details.map((d, i) => [i, labelOf(d)]), 0, show));
  section.append(controls, place);
  show(0);
}
