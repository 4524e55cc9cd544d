/* The requests that took longest. */

function requestsOf(place, detail) {
  const list = detail.events.requests;
  const [NAME, PROMPT, OUTPUT, ARRIVE, ADMIT, FIRST, END, PREEMPTIONS, HOW] = Array.from({ length: 9 }, (v, i) => i);
  const since = (r, k) => r[k] === null || r[ARRIVE] === null ? null : r[k] - r[ARRIVE];
  const lapse = (title, k) => ({ title, num: true, cell: r => secondsText(since(r, k)), sort: r => since(r, k) ?? "–" });
  const columns = [
    { title: "request", cell: r => r[NAME] }, { title: "prompt tokens", num: true, cell: r => grouped(r[PROMPT]) }, { title: "output tokens", num: true, cell: r => grouped(r[OUTPUT]) },
    { title: "arrived", num: true, cell: r => secondsText(r[ARRIVE]), sort: r => r[ARRIVE] ?? "–" }, lapse("admitted after", ADMIT), lapse("first token after", FIRST), lapse("ended after", END),
    { title: "preemptions", num: true, cell: r => grouped(r[PREEMPTIONS]) }, { title: "end", cell: r => r[HOW] },
  ];
  const all = list.shown.length === list.count;
  const caption = all ? "All " + counted(list.count, "request") + ", the longest first." : "The " + list.shown.length + " of " + grouped(list.count) + " requests that took longest.";
  place.replaceChildren(scrolling(sortable(table(caption, columns, list.shown)), "List of requests", true));
}

function requestsSection() {
  const details = DATA.details.filter(d => d.events && d.events.requests.count > 0);
  if (details.length === 0) return;
  const section = reveal("requests"), controls = el("div", { class: "controls" }), place = el("div");
  if (details.length > 1) controls.append(choice("Result", details.map((d, i) => [i, labelOf(d)]), 0, i => requestsOf(place, details[i])));
  for (const d of details) {
    const list = d.events.requests;
    if (list.shown.length < list.count) notes.push(labelOf(d) + ": the list of requests has the " + list.shown.length + " of " + grouped(list.count) + " that took longest.");
  }
  section.append(controls, place);
  requestsOf(place, details[0]);
}
