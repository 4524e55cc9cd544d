"use strict";
/* Small tools of the page. Texts of the data reach the document as text nodes only. */

const DATA = JSON.parse(document.getElementById("page-data").textContent);
const HAS_PLOTS = typeof uPlot === "function";
const notes = []; /* what was thinned, told at the end of the page */

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* --- numbers ------------------------------------------------------------------------------------ */

function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

function plainNumber(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return grouped(value);
  return Math.abs(value) >= 1000 ? grouped(value) : String(Number(value.toPrecision(4)));
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, value = bytes;
  for (; value >= 1024 && unit + 1 < units.length; unit++) value /= 1024;
  return (unit === 0 ? String(Math.round(value)) : value.toFixed(value < 10 ? 2 : 1)) + " " + units[unit];
}

function percentText(share) {
  return share === null ? "–" : (100 * share).toFixed(2) + " %";
}

function secondsText(ns) {
  if (ns === null) return "–";
  const s = ns / 1e9;
  if (s >= 100) return s.toFixed(1) + " s";
  if (s >= 1) return s.toFixed(3) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  if (ns >= 1e3) return (ns / 1e3).toFixed(1) + " µs";
  return Math.round(ns) + " ns";
}

/* A tick of a time axis, in the unit that its size asks for. */
function timeTick(s) {
  if (s === null) return "";
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) if (Math.abs(s) >= unit * 0.999999) return plainNumber(Number((s / unit).toPrecision(6))) + " " + name;
  return s === 0 ? "0" : plainNumber(Number((s * 1e9).toPrecision(6))) + " ns";
}

/* "1 episode", "2 episodes" */
function counted(value, word) {
  return grouped(value) + " " + word + (value === 1 ? "" : "s");
}

/* --- tables --------------------------------------------------------------------------------------- */

/* columns: {title, num, wide, cell(row) → text or node, sort(row) → what the cell is sorted by, if not its text}. */
function table(caption, columns, rows, attributes) {
  const kind = c => c.num ? "num" : c.wide ? "wide" : "";
  const head = el("tr", {}, columns.map(c => el("th", { scope: "col", class: kind(c) }, c.title)));
  const cell = (c, i, row) => {
    const node = el(i === 0 ? "th" : "td", i === 0 ? { scope: "row", class: kind(c) } : { class: kind(c) }, c.cell(row));
    if (c.sort) node.dataset.sort = String(c.sort(row));
    return node;
  };
  const body = rows.map(row => el("tr", {}, columns.map((c, i) => cell(c, i, row))));
  const t = el("table", attributes || {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body));
  return t;
}

function scrolling(node, label, tall) {
  return el("div", { class: tall ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": label }, node);
}

/* What a cell is sorted by: its number if it begins with one. */
function sortKey(cell) {
  const text = "sort" in cell.dataset ? cell.dataset.sort : cell.textContent, number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}

function sortBy(t, column, descending) {
  const rows = Array.from(t.tBodies[0].rows);
  const keys = new Map(rows.map(r => [r, sortKey(r.cells[column])]));
  const before = (a, b) => {
    const x = keys.get(a), y = keys.get(b);
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return x < y ? -1 : x > y ? 1 : 0;
  };
  rows.sort((a, b) => descending ? before(b, a) : before(a, b));
  t.tBodies[0].append(...rows);
}

/* Headings become buttons that sort; a second press turns the order round. */
function sortable(t) {
  Array.from(t.tHead.rows[0].cells).forEach((th, column) => {
    if ("fixed" in th.dataset) return;
    const press = () => {
      const descending = th.getAttribute("aria-sort") === "ascending";
      for (const other of t.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(t, column, descending);
    };
    const words = th.textContent;
    th.textContent = "";
    th.append(el("button", { type: "button", on: { click: press } }, words));
  });
  return t;
}

let choices = 0;

/* A labelled choice. options: [value, text]. */
function choice(label, options, chosen, changed) {
  const id = "choice-" + choices++;
  const select = el("select", { id, on: { change: () => changed(select.value) } },
    options.map(([value, text]) => el("option", { value: String(value), selected: String(value) === String(chosen) }, text)));
  return el("span", { class: "choice" }, el("label", { for: id }, label), select);
}

/* Shows a section and its link. */
function reveal(id) {
  const section = document.getElementById(id);
  section.hidden = false;
  return section;
}
