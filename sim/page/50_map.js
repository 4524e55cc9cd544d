/* The pool, block by block, at a moment that the slider chooses. */

const [FREE, CACHED, HELD, OVERHEAD, PINNED] = [0, 1, 2, 3, 4];
const KIND_NAMES = ["free", "cached", "held", "overhead", "cached_pinned"];
const SLOT_STATES = ["live", "dead", "reserved", "internal", "rounding"];
/* Few cells are shown larger. */
const cellPixelsMin = count => count > 2000 ? 5 : 10;

let mapRedraw = () => {};

/* Cells of a frame, one by one: {kind, request, holders, slots: [by SLOT_STATES]}. */
function cellsOf(frame) {
  const cells = [];
  for (const [run, kind, request, holders, ...slots] of frame.cells) {
    const cell = { kind, request, holders, slots };
    for (let i = 0; i < run; i++) cells.push(cell);
  }
  return cells;
}

/* A colour of its own for each request: hues a golden angle apart. */
function requestColor(number) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && !("light" in document.documentElement.dataset);
  return `hsl(${(number * 137.508) % 360} 65% ${dark ? 62 : 45}%)`;
}

/* The device at the same moment: bytes by purpose, and under the caching allocator its segments to scale. */
class DeviceMap {
  constructor() {
    this.place = el("div", { id: "map-device" });
  }

  /* Pieces of a bar: [class, share of it]. */
  bar(pieces) {
    const parts = pieces.map(([name, share]) => {
      const part = el("i", { class: name });
      part.style.width = 100 * share + "%";
      return part;
    });
    return el("div", { class: "bar", "aria-hidden": "true" }, ...parts);
  }

  show(device) {
    this.place.textContent = "";
    if (!device) return;
    const rows = Object.entries(device.bytes), total = rows.reduce((sum, [, bytes]) => sum + bytes, 0);
    this.place.append(el("h3", {}, "The device after that step"), this.bar(rows.map(([name, bytes]) => ["d-" + name, bytes / total])),
      table("Bytes of the device by purpose", [{ title: "purpose", cell: r => [el("i", { class: "d-" + r[0] }), r[0]] }, { title: "bytes", num: true, cell: r => grouped(r[1]) },
        { title: "share", num: true, cell: r => percentText(r[1] / total) }], rows));
    if (device.segments.length > 0) this.place.append(this.segments(device));
  }

  segments({ segments, segments_left_out: more }) {
    const largest = Math.max(...segments.map(([bytes]) => bytes));
    const idle = ([, ...blocks]) => blocks.reduce((sum, [bytes, used]) => used ? sum : sum + bytes, 0);
    const drawn = ([bytes, ...blocks]) => this.bar([...blocks.map(([b, used]) => [used ? "d-used" : "d-cached", b / largest]), ["d-none", 1 - bytes / largest]]);
    const columns = [{ title: "segment", num: true, cell: r => String(segments.indexOf(r) + 1) }, { title: "bytes", num: true, cell: r => grouped(r[0]) },
      { title: "kept without use", num: true, cell: r => grouped(idle(r)) }, { title: "to scale", wide: true, cell: r => drawn(r) }];
    return scrolling(table("Segments of the caching allocator, by address; paler: kept without use" + (more > 0 ? "; " + grouped(more) + " more" : ""), columns, segments), "Segments", true);
  }
}

class MemoryMap {
  constructor(parent, detail) {
    this.detail = detail;
    this.map = detail["memory-map"];
    this.header = this.map.header;
    this.frames = this.map.frames;
    this.by = "state";
    this.chosen = null; /* a request's number */
    this.cursor = null; /* a cell */
    this.build(parent);
    this.show(this.fullest());
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }

  build(parent) {
    const last = this.frames.length - 1;
    this.slider = el("input", { type: "range", class: "map-slider", id: "map-slider", min: "0", max: String(last), value: "0", on: { input: () => this.show(Number(this.slider.value)) } });
    const step = by => () => this.show(Math.min(last, Math.max(0, this.index + by)));
    const arrow = (text, name, by) => el("button", { type: "button", class: "plain", "aria-label": name, on: { click: step(by) } }, text);
    this.requests = el("select", { id: "map-request", on: { change: () => this.choose(this.requests.value === "" ? null : Number(this.requests.value)) } });
    this.summary = el("p", { id: "map-summary", "aria-live": "polite" });
    this.canvas = el("canvas", { class: "map-grid", id: "map-grid", tabindex: "0", role: "application", "aria-roledescription": "map of the pool",
      "aria-label": "The pool by address. Arrow keys move from one to the next, Enter shows the block table of the request there.",
      on: { mousemove: e => this.point(this.cellAt(e)), mouseleave: () => this.point(null), click: e => this.chooseAt(this.cellAt(e)), keydown: e => this.key(e) } });
    this.at = el("p", { class: "at map-at", id: "map-at", "aria-live": "polite" });
    this.legend = el("p", { class: "key cell-key", "aria-hidden": "true" });
    this.table = el("div", { id: "map-table" });
    this.device = new DeviceMap();
    this.list = el("details", {}, el("summary", {}, "Running requests as a table"));
    this.list.addEventListener("toggle", () => this.fillList());
    const controls = el("div", { class: "controls" },
      choice("Colour by", [["state", "state"], ["request", "request"]], "state", v => { this.by = v; this.draw(); }),
      el("span", { class: "choice" }, el("label", { for: "map-request" }, "Request"), this.requests));
    const sliding = el("div", { class: "controls" }, el("label", { for: "map-slider" }, "Time"), arrow("◀", "One picture back", -1), this.slider, arrow("▶", "One picture on", 1));
    parent.append(controls, sliding, this.summary, this.legend, el("div", {}, this.canvas), this.at, this.table, this.list, this.device.place);
  }

  /* Where there is most to see at first: the picture with most bytes held. */
  fullest() {
    const held = f => SLOT_STATES.reduce((sum, s) => sum + (f.states[s] || 0), 0);
    return this.frames.reduce((best, f, i) => held(f) > held(this.frames[best]) ? i : best, 0);
  }

  /* --- what is shown ------------------------------------------------------------------------------ */

  show(i) {
    this.index = i;
    this.frame = this.frames[i];
    this.cells = cellsOf(this.frame);
    this.slider.value = String(i);
    const f = this.frame, pool = Object.values(f.states).reduce((a, b) => a + b, 0), when = "after step " + grouped(f.step) + ", at " + secondsText(f.time_ns);
    this.slider.setAttribute("aria-valuetext", when);
    const states = Object.entries(f.states).filter(([, bytes]) => bytes > 0).map(([s, bytes]) => s + " " + percentText(bytes / pool));
    this.summary.textContent = when[0].toUpperCase() + when.slice(1) + ": " + counted(f.running.length, "request") + " running, " + grouped(f.waiting) + " waiting; " + states.join(", ").replace(/ %/g, "\u00a0%") + ".";
    this.requests.replaceChildren(el("option", { value: "" }, "none"), ...f.running.map(([number, id]) => el("option", { value: String(number), selected: number === this.chosen }, id)));
    if (!f.running.some(([number]) => number === this.chosen)) this.requests.value = "";
    this.fillTable();
    this.fillList(true);
    this.device.show(f.device);
    this.point(this.cursor);
  }

  running(number) {
    return this.frame.running.find(r => r[0] === number);
  }

  nameOf(number) {
    const r = this.running(number);
    return r ? r[1] : "#" + number;
  }

  choose(number) {
    this.chosen = number;
    this.requests.value = number === null ? "" : String(number);
    this.fillTable();
    this.draw();
  }

  chooseAt(cell) {
    if (cell !== null && this.cells[cell].kind === HELD) this.choose(this.cells[cell].request);
  }

  /* --- words --------------------------------------------------------------------------------------- */

  unitName(cell) {
    const { first_number: first, units_per_cell: each, units, contiguous } = this.header, word = contiguous ? "slot" : "block";
    const from = cell * each + first, to = Math.min((cell + 1) * each, units) - 1 + first;
    return from === to ? word + " " + grouped(from) : word + "s " + grouped(from) + " to " + grouped(to);
  }

  describe(cell) {
    const c = this.cells[cell], name = this.unitName(cell);
    if (c.kind !== HELD) return name + ": " + KIND_NAMES[c.kind];
    const slots = c.slots.map((n, k) => [n, SLOT_STATES[k]]).filter(([n]) => n > 0).map(([n, state]) => n + " " + state);
    const more = c.holders > 1 ? " and " + counted(c.holders - 1, "more sequence") : "";
    return name + ": request " + this.nameOf(c.request) + more + "; of " + this.header.unit_tokens * this.header.units_per_cell + " slots " + slots.join(", ");
  }

  point(cell) {
    this.cursor = cell !== null && cell < this.cells.length ? cell : null;
    this.at.textContent = this.cursor === null ? "" : this.describe(this.cursor);
    this.draw();
  }

  /* The block table of the chosen request. */
  fillTable() {
    const r = this.chosen === null ? null : this.running(this.chosen);
    this.table.textContent = "";
    if (this.chosen === null) return;
    if (!r) {
      this.table.append(el("p", {}, "The chosen request does not run at this moment."));
      return;
    }
    const [, id, filled, end, place] = r;
    this.table.append(el("h3", {}, "Request ", el("code", {}, id)), el("p", {}, grouped(filled) + " of " + counted(end, "token") + " filled."));
    if (this.header.contiguous) this.table.append(el("p", {}, "Its region begins at slot " + grouped(place[0]) + ": " + grouped(place[1]) + " slots asked, " + grouped(place[2]) + " taken."));
    else if (place.length === 0) this.table.append(el("p", { class: "note" }, "Block tables of pools as large as this are not recorded."));
    else this.table.append(this.blockTable(id, filled, place));
  }

  blockTable(id, filled, place) {
    const b = this.header.unit_tokens, cell = block => this.cells[block - this.header.first_number];
    const rows = place.map((block, i) => ({ block, i })).filter(r => r.block > 0 || this.header.first_number > 0);
    const columns = [
      { title: "logical block", num: true, cell: r => String(r.i) }, { title: "tokens", num: true, cell: r => r.i * b + "–" + (r.i * b + b - 1) },
      { title: "physical block", num: true, cell: r => grouped(r.block) }, { title: "filled", num: true, cell: r => Math.max(0, Math.min(b, filled - r.i * b)) + " of " + b },
      { title: "sequences that hold it", num: true, cell: r => cell(r.block) ? String(cell(r.block).holders) : "–" },
    ];
    return scrolling(table("Block table of request " + id, columns, rows), "Block table", true);
  }

  /* What the map shows, for those who cannot see it. */
  fillList(moved) {
    if (!this.list.open) {
      if (moved) while (this.list.childElementCount > 1) this.list.lastElementChild.remove();
      return;
    }
    const sums = new Map(this.frame.running.map(r => [r[0], [0, 0, 0, 0, 0]]));
    for (const c of this.cells) if (c.kind === HELD && sums.has(c.request)) c.slots.forEach((n, k) => { sums.get(c.request)[k] += n; });
    const columns = [{ title: "request", cell: r => r[1] }, { title: "tokens filled", num: true, cell: r => grouped(r[2]) }, { title: "at its end", num: true, cell: r => grouped(r[3]) },
      ...SLOT_STATES.map((s, k) => ({ title: s + " slots", num: true, cell: r => grouped(sums.get(r[0])[k]) }))];
    while (this.list.childElementCount > 1) this.list.lastElementChild.remove();
    this.list.append(scrolling(sortable(table("Slots by state; shared blocks count for the first holder", columns, this.frame.running)), "Running requests", true));
  }

  /* --- the picture ---------------------------------------------------------------------------------- */

  layout() {
    const width = Math.max(200, this.canvas.parentElement.clientWidth), n = this.cells.length;
    const columns = Math.max(1, Math.min(n, Math.max(16, Math.ceil(Math.sqrt(n * 3))), Math.floor(width / cellPixelsMin(n))));
    const size = Math.min(28, Math.floor(width / columns));
    return { columns, size, rows: Math.ceil(n / columns), width: columns * size };
  }

  cellAt(event) {
    const { columns, size } = this.layout(), box = this.canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left - 1) / size), y = Math.floor((event.clientY - box.top - 1) / size), cell = y * columns + x;
    return x >= 0 && x < columns && y >= 0 && cell < this.cells.length ? cell : null;
  }

  paint(context, cell, x, y, size, colors) {
    const room = size > 9 ? size - 1 : size;
    context.fillStyle = cell.kind === HELD ? colors.free : colors[KIND_NAMES[cell.kind]];
    context.fillRect(x, y, room, room);
    if (cell.kind !== HELD) {
      if (cell.kind !== FREE && size >= 9) this.mark(context, cell.kind, x + room / 2, y + room / 2, size, colors.ink);
      return;
    }
    const slots = this.header.unit_tokens * this.header.units_per_cell, own = requestColor(cell.request);
    let left = x;
    cell.slots.forEach((n, k) => {
      const width = room * n / slots;
      context.fillStyle = this.by === "state" ? colors[SLOT_STATES[k]] : own;
      context.globalAlpha = this.by === "state" || k === 0 ? 1 : 0.35;
      context.fillRect(left, y, width, room);
      left += width;
    });
    context.globalAlpha = 1;
    if (cell.holders > 1 && size >= 9) {
      context.strokeStyle = colors.ground;
      context.lineWidth = 1.5;
      context.strokeRect(x + room * 0.3, y + room * 0.3, room * 0.4, room * 0.4);
    }
  }

  /* Told apart without colour too: cached have a dot, pinned ones a ring, what is set aside a cross, shared blocks a square. */
  mark(context, kind, x, y, size, ink) {
    context.fillStyle = context.strokeStyle = ink;
    context.lineWidth = 1;
    context.beginPath();
    if (kind === CACHED) {
      context.arc(x, y, size * 0.1, 0, 7);
      context.fill();
    } else if (kind === PINNED) {
      context.arc(x, y, size * 0.2, 0, 7);
      context.stroke();
    } else {
      const r = size * 0.25;
      context.moveTo(x - r, y - r);
      context.lineTo(x + r, y + r);
      context.moveTo(x - r, y + r);
      context.lineTo(x + r, y - r);
      context.stroke();
    }
  }

  /* Lines round a set of cells; none between two of them. */
  outline(context, cells, { columns, size }, ink) {
    const inside = new Set(cells);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.beginPath();
    for (const cell of cells) {
      const column = cell % columns, x = column * size, y = Math.floor(cell / columns) * size, end = size - 0.5;
      const edge = (there, x1, y1, x2, y2) => {
        if (there) return;
        context.moveTo(x + x1, y + y1);
        context.lineTo(x + x2, y + y2);
      };
      edge(inside.has(cell - columns), 0, 0.5, end, 0.5);
      edge(inside.has(cell + columns), 0, end, end, end);
      edge(column > 0 && inside.has(cell - 1), 0.5, 0, 0.5, end);
      edge(column + 1 < columns && inside.has(cell + 1), end, 0, end, end);
    }
    context.stroke();
  }

  chosenCells() {
    const r = this.chosen === null ? null : this.running(this.chosen), { first_number: first, units_per_cell: each, contiguous } = this.header;
    if (!r) return [];
    if (!contiguous) return r[4].map(block => block - first).filter(c => c >= 0 && this.cells[c] && this.cells[c].kind === HELD);
    return this.cells.map((c, i) => i).filter(i => i * each < r[4][0] + r[4][2] && (i + 1) * each > r[4][0]);
  }

  draw() {
    const layout = this.layout(), scale = window.devicePixelRatio || 1, height = layout.rows * layout.size;
    const colors = { ground: color("ground"), ink: color("ink") };
    for (const s of [...SLOT_STATES, "free", "cached", "cached_pinned", "overhead"]) colors[s] = color("s-" + s);
    this.canvas.width = layout.width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.width = layout.width + 2 + "px";
    this.canvas.style.height = height + 2 + "px";
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    this.cells.forEach((cell, i) => this.paint(context, cell, i % layout.columns * layout.size, Math.floor(i / layout.columns) * layout.size, layout.size, colors));
    this.outline(context, this.chosenCells(), layout, colors.ink);
    if (this.cursor !== null) this.outline(context, [this.cursor], layout, color("accent"));
    this.drawLegend();
  }

  drawLegend() {
    const used = new Set(this.cells.map(c => KIND_NAMES[c.kind]));
    const states = [...SLOT_STATES.filter((s, k) => this.cells.some(c => c.kind === HELD && c.slots[k] > 0)), ...["cached", "cached_pinned", "free", "overhead"].filter(k => used.has(k))];
    const words = { cached: "cached (dot)", cached_pinned: "pinned (ring)", overhead: "overhead (cross)" };
    this.legend.replaceChildren(...(this.by === "state" ? states.map(s => el("span", {}, el("i", { class: "s-" + s }), words[s] || s)) : [el("span", {}, "A colour a request; what holds no live token is paler.")]),
      this.cells.some(c => c.holders > 1) ? el("span", {}, "□ held by several sequences") : "");
  }

  key(event) {
    const { columns } = this.layout(), steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const last = this.cells.length - 1, at = this.cursor;
    const to = { Home: 0, End: last }[event.key] ?? (event.key in steps ? (at === null ? 0 : at + steps[event.key]) : null);
    if (event.key === "Enter" && at !== null) this.chooseAt(at);
    else if (to === null) return;
    else this.point(Math.min(last, Math.max(0, to)));
    event.preventDefault();
  }
}

function mapSection() {
  const details = DATA.details.filter(d => d["memory-map"] && d["memory-map"].frames.length > 0);
  if (details.length === 0) return;
  const section = reveal("map"), controls = el("div", { class: "controls" }), place = el("div");
  let map = null;
  const show = i => {
    place.textContent = "";
    map = new MemoryMap(place, details[i]);
    mapRedraw = () => map.draw();
  };
  for (const d of details) {
    const m = d["memory-map"], each = m.header.units_per_cell;
    if (m.every > 1) notes.push(labelOf(d) + ": memory map: one of every " + m.every + " pictures of the file.");
    if (each > 1) notes.push(labelOf(d) + ": memory map: a cell stands for " + each + (m.header.contiguous ? " slots" : " blocks") + ", all of them added up; its colour by request is that of one of them.");
  }
  if (details.length > 1) controls.append(choice("Result", details.map((d, i) => [i, labelOf(d)]), 0, show));
  section.append(controls, place);
  show(0);
}
