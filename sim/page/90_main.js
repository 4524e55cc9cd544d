/* Puts the page together. */

function thinned() {
  const place = document.getElementById("thinned");
  if (notes.length === 0) return;
  place.append(el("h3", {}, "What stands behind the plots"), el("ul", {}, notes.map(n => el("li", {}, n))));
}

function redraw() {
  for (const p of plots) p.draw();
  mapRedraw();
}

const print = { begin: () => { document.documentElement.dataset.light = ""; redraw(); }, end: () => { delete document.documentElement.dataset.light; redraw(); } };

for (const t of document.querySelectorAll("table.sortable")) sortable(t);
compareSection();
timeSection();
mapSection();
refusalsSection();
requestsSection();
thinned();
for (const link of document.querySelectorAll("nav a[data-section]")) {
  const section = document.querySelector(link.getAttribute("href"));
  link.hidden = !section || section.hidden;
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", print.begin);
addEventListener("afterprint", print.end);
document.documentElement.dataset.ready = "";
