/* One interactive plot: lines or stacked areas over x. Drag or the buttons zoom; hover or the arrow keys show values;
 * series are switched by their buttons; the values stand in a table too, which is all there is without the library. */

const plots = []; /* all of the page, to be drawn again when colours change */
const TABLE_ROWS_MAX = 300;
/* Between ticks of bytes, and of counts. */
const POWERS_OF_2 = Array.from({ length: 60 }, (v, i) => 2 ** i);
const WHOLE_STEPS = Array.from({ length: 12 }, (v, i) => [1, 2, 5].map(s => s * 10 ** i)).flat();

/* The point whose interval holds x: the last that begins at or before it. */
function indexAt(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

class Plot {
  /* spec: {id, title, note, x: {values, text, steps, log2, ticks}, series: [{name, values, min, max, color, hidden, text(value, i)}],
   *        stacked, yText, yTick, yMax, binary, group, height} */
  constructor(parent, spec) {
    this.spec = spec;
    this.shown = spec.series.map(s => !s.hidden);
    this.index = null;
    this.range = null;
    this.box = el("div", { class: "plot", id: spec.id, tabindex: "0", role: "application", "aria-roledescription": "plot",
      "aria-label": spec.title + ". Arrow keys show values, plus and minus zoom, 0 shows all.", on: { keydown: e => this.key(e) } });
    this.at = el("p", { class: "at" });
    this.said = el("p", { class: "visually-hidden", "aria-live": "polite" });
    this.buttons = spec.series.map((s, i) => this.button(s, i));
    const caption = el("figcaption", { id: spec.id + "-title" }, spec.title, spec.note ? el("small", {}, spec.note) : null);
    const controls = el("div", { class: "controls no-print" },
      this.plain("Zoom in", () => this.zoom(0.5)), this.plain("Zoom out", () => this.zoom(2)), this.plain("Show all", () => this.setRange(null)), this.at);
    this.figure = el("figure", { "aria-labelledby": spec.id + "-title" }, caption,
      el("div", { class: "legend" }, this.buttons), HAS_PLOTS ? [this.box, controls, this.said] : null, this.values());
    parent.append(this.figure);
    if (!HAS_PLOTS) return;
    plots.push(this);
    this.draw();
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  plain(text, press) {
    return el("button", { type: "button", class: "plain", on: { click: press } }, text);
  }

  button(s, i) {
    const press = () => {
      this.shown[i] = !this.shown[i];
      b.setAttribute("aria-pressed", String(this.shown[i]));
      if (HAS_PLOTS) this.draw();
    };
    const swatch = el("i", { "aria-hidden": "true" });
    swatch.style.background = "var(--" + s.color + ")";
    const b = el("button", { type: "button", class: "series", "aria-pressed": String(this.shown[i]), on: { click: press } }, swatch, s.name, el("output", {}));
    b.dataset.series = s.name;
    return b;
  }

  /* --- values ------------------------------------------------------------------------------------ */

  text(s, i) {
    const value = s.values[i];
    if (value === null || value === undefined) return "–";
    const text = (s.text || this.spec.yText)(value, i);
    return s.min && s.min[i] !== s.max[i] ? text + " (" + (s.text || this.spec.yText)(s.min[i], i) + " to " + (s.text || this.spec.yText)(s.max[i], i) + ")" : text;
  }

  show(i) {
    this.index = i;
    const x = this.spec.x;
    this.at.textContent = i === null ? "" : x.name + " " + x.text(x.values[i]);
    this.spec.series.forEach((s, k) => {
      const out = this.buttons[k].querySelector("output");
      out.textContent = i === null ? "" : this.text(s, i);
      if (i === null) delete out.dataset.value;
      else out.dataset.value = String(s.values[i]);
    });
  }

  say() {
    if (this.index === null) return;
    this.said.textContent = this.at.textContent + ": " + this.spec.series.filter((s, k) => this.shown[k])
      .map(s => s.name + " " + this.text(s, this.index)).join(", ");
  }

  values() {
    const details = el("details", {}, el("summary", {}, "Values as a table"));
    const fill = () => {
      if (!details.open || details.childElementCount > 1) return;
      const { x, series } = this.spec, every = Math.ceil(x.values.length / TABLE_ROWS_MAX);
      const rows = x.values.map((v, i) => i).filter(i => i % every === 0);
      const columns = [{ title: x.name, num: true, cell: i => x.text(x.values[i]) },
        ...series.map(s => ({ title: s.name, num: true, cell: i => this.text(s, i) }))];
      const caption = every > 1 ? "Every " + every + "th of " + x.values.length + " points" : this.spec.title;
      details.append(scrolling(table(caption, columns, rows), this.spec.title, true));
    };
    details.addEventListener("toggle", fill);
    if (!HAS_PLOTS) details.open = true;
    return details;
  }

  /* --- drawing ----------------------------------------------------------------------------------- */

  /* Series as the library wants them: stacked ones as running sums, the largest first. */
  lines() {
    const { spec } = this, lines = [], bands = [];
    const add = (s, values, more) => lines.push({ s, values, more });
    if (spec.stacked) {
      const sum = new Array(spec.x.values.length).fill(0);
      spec.series.forEach((s, k) => {
        if (!this.shown[k]) return;
        s.values.forEach((v, i) => { sum[i] += v || 0; });
        add(s, sum.slice(), { fill: color(s.color) });
      });
      return { lines: lines.reverse(), bands };
    }
    spec.series.forEach((s, k) => {
      if (!this.shown[k]) return;
      if (s.min) {
        add(s, s.max, { stroke: "transparent", points: { show: false } });
        add(s, s.min, { stroke: "transparent", points: { show: false } });
        bands.push({ series: [lines.length - 1, lines.length], fill: color(s.color) + "38" });
      }
      add(s, s.values, {});
    });
    return { lines, bands };
  }

  /* All of the x axis; single points have room beside them. */
  whole() {
    const { values, steps, log2 } = this.spec.x, first = values[0], last = values[values.length - 1];
    if (steps) return first < last ? [first, last] : [first - 1, last + 1];
    if (log2) return [first / 1.2, last * 1.2];
    const room = (last - first) * 0.03 || 1;
    return [first - room, last + room];
  }

  options(lines, bands) {
    const { spec } = this, ink = color("soft"), line = color("line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
    const paths = spec.x.steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const xs = spec.x.values;
    return {
      width: Math.max(200, this.box.clientWidth), height: spec.height || 280,
      legend: { show: false },
      scales: {
        x: { time: false, distr: spec.x.log2 ? 3 : 1, log: 2, range: () => this.range || this.whole() },
        y: { range: (u, min, max) => [Math.min(0, min || 0), spec.yMax || (max > 0 ? max * 1.05 : 1)] },
      },
      axes: [
        { ...axis, size: 36, space: 70, values: (u, ticks) => ticks.map(v => spec.x.tick(v)), ...(spec.x.ticks ? { splits: () => spec.x.ticks, filter: (u, s) => s } : {}) },
        { ...axis, size: 74, ...(spec.binary ? { incrs: POWERS_OF_2 } : spec.yText === grouped ? { incrs: WHOLE_STEPS } : {}), values: (u, ticks) => ticks.map(v => v === null ? "" : (spec.yTick || spec.yText)(v)) },
      ],
      series: [{}, ...lines.map(l => ({ stroke: color(l.s.color), width: spec.stacked ? 0.5 : 2, paths, points: { show: !spec.x.steps }, spanGaps: true, ...l.more }))],
      bands,
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, ...(spec.group ? { sync: { key: spec.group, setSeries: false } } : {}),
        ...(spec.x.steps ? { dataIdx: (u, k, closest, x) => x === undefined || x === null ? closest : indexAt(xs, x) } : {}),
        points: { show: !spec.stacked } },
      hooks: {
        setCursor: [u => this.show(u.cursor.left === undefined || u.cursor.left < 0 ? null : this.indexOf(u))],
        setSelect: [u => this.selected(u)],
      },
    };
  }

  indexOf(u) {
    return this.spec.x.steps ? indexAt(this.spec.x.values, u.posToVal(u.cursor.left, "x")) : u.cursor.idx;
  }

  draw() {
    if (this.u) this.u.destroy();
    const { lines, bands } = this.lines();
    this.u = new uPlot(this.options(lines, bands), [this.spec.x.values, ...lines.map(l => l.values)], this.box);
    this.u.over.addEventListener("dblclick", () => this.setRange(null));
  }

  resize() {
    const width = Math.max(200, this.box.clientWidth);
    if (this.u && width !== this.u.width) this.u.setSize({ width, height: this.u.height });
  }

  /* --- zoom -------------------------------------------------------------------------------------- */

  selected(u) {
    if (u.select.width < 4) return;
    const range = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.setRange(range);
  }

  /* null: all. Plots of one group show the same range. */
  setRange(range) {
    for (const p of plots) {
      if (p !== this && (!this.spec.group || p.spec.group !== this.spec.group)) continue;
      p.range = range;
      const [min, max] = range || p.whole();
      p.u.setScale("x", { min, max });
    }
  }

  zoom(factor) {
    const xs = this.spec.x.values, [first, last] = this.whole();
    const [min, max] = this.range || [first, last];
    const middle = this.index === null ? (min + max) / 2 : Math.min(max, Math.max(min, xs[this.index]));
    const from = Math.max(first, middle - (middle - min) * factor), to = Math.min(last, middle + (max - middle) * factor);
    this.setRange(from <= first && to >= last ? null : to > from ? [from, to] : this.range);
  }

  move(i) {
    const xs = this.spec.x.values, to = Math.min(xs.length - 1, Math.max(0, i));
    if (this.range && (xs[to] < this.range[0] || xs[to] > this.range[1])) {
      const width = this.range[1] - this.range[0];
      this.setRange([xs[to] - width / 2, xs[to] + width / 2]);
    }
    const left = this.u.valToPos(xs[to], "x");
    /* A hair to the right: the point's own interval. */
    this.u.setCursor({ left: Math.max(0, left) + 0.01, top: this.u.height / 2 });
    this.show(to);
    this.say();
  }

  key(event) {
    const at = this.index === null ? -1 : this.index, page = Math.max(1, Math.round(this.spec.x.values.length / 10));
    const step = event.shiftKey ? page : 1;
    const actions = {
      ArrowRight: () => this.move(at + step), ArrowLeft: () => this.move(at - step),
      Home: () => this.move(0), End: () => this.move(this.spec.x.values.length - 1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      0: () => this.setRange(null), Escape: () => this.setRange(null),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  remove() {
    if (this.u) this.u.destroy();
    this.figure.remove();
    const i = plots.indexOf(this);
    if (i >= 0) plots.splice(i, 1);
  }
}
