/* `pagesim report` in headless Chromium. Expected values come from the files that the page was made of. */
import { writeFileSync } from "node:fs";
import { check, checkEqual, checkNear, csv, file, inaccessible, open, pagesim, runAll, test, text } from "./harness.mjs";

const TRACE = "gen:requests=200,arrivals=poisson:40,prompt-tokens=lognormal:5:1@1..1500,output-tokens=lognormal:4:0.8@1..300";
const POOL = ["--pool-tokens", "4000"];

for (const policy of ["static", "prefix"]) {
  pagesim("run", TRACE, "--policy", policy, ...POOL, "--record", file(policy), "--timeline-interval", "100ms");
  pagesim("report", file(policy), "--output", file(policy + ".html"));
}
pagesim("report", file("static"), file("prefix"), "--output", file("two.html"));
pagesim("run", TRACE, "--gpu-memory", "24GiB", "--weights-memory", "16GiB", "--non-torch-memory", "700MiB", "--activation-memory", "1GiB",
  "--cuda-graph-memory", "200MiB", "--gpu-memory-utilization", "0.9", "--late-buffer", "600MiB@1s", "--device-model", "caching", "--record", file("device"));
pagesim("report", file("device"), "--output", file("device.html"));
pagesim("sweep", TRACE, "--policy", "static-paged,dynamic,prefix", "--block-size", "1,16,256", "--seed", "1,2", ...POOL, "--output", file("sweep.jsonl"));
pagesim("report", file("sweep.jsonl"), "--output", file("sweep.html"));

/* The picture of a plot. */
const picture = (page, id) => page.$eval(`#${id} canvas`, c => c.toDataURL());
const values = (page, id) => page.$$eval(`figure:has(#${id}) .series`, bs => Object.fromEntries(bs.map(b => [b.dataset.series, Number(b.querySelector("output").dataset.value)])));
const shown = (page, id) => page.$$eval(`figure:has(#${id}) .series`, bs => Object.fromEntries(bs.map(b => [b.dataset.series, b.querySelector("output").textContent])));

/* Where the x axis has its point i, in pixels of the window: the middle of its step, where it has one. */
const pixel = (page, id, i) => page.evaluate(([plotId, k]) => {
  const p = plots.find(q => q.spec.id === plotId), box = p.u.over.getBoundingClientRect(), { values, steps } = p.spec.x;
  const x = steps && k + 1 < values.length ? (values[k] + values[k + 1]) / 2 : values[k];
  return { x: box.left + p.u.valToPos(x, "x"), y: box.top + box.height / 2 };
}, [id, i]);

/* Until it is so, for what an event of the browser brings about. */
async function until(holds, what) {
  for (let i = 0; i < 50; i++) {
    if (await holds()) return;
    await new Promise(done => setTimeout(done, 20));
  }
  check(false, what);
}

for (const scheme of ["light", "dark"]) {
  test(`open__${scheme}__no_errors`, async () => {
    for (const name of ["static.html", "two.html", "sweep.html"]) {
      const page = await open(name, { scheme });
      check(await page.locator("#answer .lead").first().isVisible(), name + ": no answer");
    }
  });
}

test("hover__states__bytes_of_the_timeline_file", async () => {
  const page = await open("prefix.html"), rows = csv("prefix/timeline.csv");
  check(rows.length > 50 && rows.length <= 2048, `${rows.length} rows: thinned, or too few`);
  await page.getByLabel("Unit").selectOption("bytes");
  await page.locator("#plot-states").scrollIntoViewIfNeeded();
  for (const i of [0, 7, Math.floor(rows.length / 2), rows.length - 1]) {
    const at = await pixel(page, "plot-states", i);
    await page.mouse.move(at.x, at.y);
    const found = await values(page, "plot-states");
    check("live" in found && "cached" in found, "no buttons for live and cached");
    for (const [state, value] of Object.entries(found)) checkEqual(value, rows[i][state + "_bytes"], `row ${i}, ${state}`);
  }
});

test("hover__states__shown_as_share_of_the_pool", async () => {
  const page = await open("static.html"), rows = csv("static/timeline.csv"), result = JSON.parse(text("static/result.json"));
  await page.locator("#plot-states").scrollIntoViewIfNeeded();
  const at = await pixel(page, "plot-states", 11);
  await page.mouse.move(at.x, at.y);
  const found = await shown(page, "plot-states");
  for (const [state, words] of Object.entries(found)) checkEqual(words, (100 * (rows[11][state + "_bytes"] / result.pool_bytes)).toFixed(2) + " %", state);
});

test("keys__plot__move_and_zoom", async () => {
  const page = await open("static.html"), rows = csv("static/timeline.csv");
  await page.getByLabel("Unit").selectOption("bytes");
  await page.focus("#plot-states");
  for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
  checkEqual((await values(page, "plot-states")).live, rows[2].live_bytes, "third row");
  await page.keyboard.press("ArrowLeft");
  checkEqual((await values(page, "plot-states")).live, rows[1].live_bytes, "second row");
  check((await page.textContent("figure:has(#plot-states) [aria-live]")).includes("live"), "nothing is said");
  const whole = await picture(page, "plot-states");
  await page.keyboard.press("+");
  check(await picture(page, "plot-states") !== whole, "+ does not zoom");
  await page.keyboard.press("0");
  checkEqual(await picture(page, "plot-states"), whole, "0 shows all again");
  await page.keyboard.press("End");
  checkEqual((await values(page, "plot-states")).live, rows[rows.length - 1].live_bytes, "last row");
});

test("drag__plot__zooms_all_over_time", async () => {
  const page = await open("prefix.html");
  await page.locator("#plot-states").scrollIntoViewIfNeeded();
  const whole = await picture(page, "plot-states"), queue = await picture(page, "plot-queue");
  const from = await pixel(page, "plot-states", 20), to = await pixel(page, "plot-states", 60);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
  check(await picture(page, "plot-states") !== whole, "the plot is the same");
  check(await picture(page, "plot-queue") !== queue, "the plot below did not follow");
  await page.locator("figure:has(#plot-states)").getByRole("button", { name: "Show all" }).click();
  checkEqual(await picture(page, "plot-states"), whole, "Show all");
});

test("toggle__series__switches_it_off_and_on", async () => {
  const page = await open("two.html");
  for (const [id, name] of [["plot-together", "static"], ["plot-states", "live"]]) {
    const button = page.locator(`figure:has(#${id}) .series[data-series="${name}"]`), before = await picture(page, id);
    await button.click();
    checkEqual(await button.getAttribute("aria-pressed"), "false", name);
    check(await picture(page, id) !== before, name + " is still drawn");
    await button.press("Enter");
    checkEqual(await button.getAttribute("aria-pressed"), "true", name);
    checkEqual(await picture(page, id), before, name + " again");
  }
});

test("choose__result__shows_its_own_timeline", async () => {
  const page = await open("two.html"), rows = csv("static/timeline.csv");
  await page.locator("#time").getByLabel("Result", { exact: true }).selectOption({ label: "static" });
  await page.getByLabel("Unit").selectOption("bytes");
  await page.focus("#plot-states");
  await page.keyboard.press("ArrowRight");
  checkEqual((await values(page, "plot-states")).live, rows[0].live_bytes, "live");
});

test("theme__changes_while_open__plots_follow", async () => {
  const page = await open("static.html", { scheme: "light" });
  const ground = () => page.$eval("body", b => getComputedStyle(b).backgroundColor);
  const light = await picture(page, "plot-states"), lightGround = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  check(await ground() !== lightGround, "the ground is the same");
  await until(async () => await picture(page, "plot-states") !== light, "the plot is the same");
  await page.emulateMedia({ colorScheme: "light" });
  await until(async () => await picture(page, "plot-states") === light, "it is not light again");
});

test("refusals__each_episode__proof_sum_of_the_log", async () => {
  const page = await open("static.html"), rows = csv("static/oom-log.csv");
  check(rows.length > 3 && rows.length <= 500, `${rows.length} episodes`);
  for (const row of [rows[0], rows[3]]) {
    await page.getByRole("button", { name: String(row.number), exact: true }).click();
    const parts = await page.$$eval("#proof tbody tr", trs => trs.map(tr => [tr.cells[0].textContent, Number(tr.cells[1].textContent.replace(/,/g, ""))]));
    const missing = Number((await page.textContent("#proof tfoot td")).replace(/,/g, ""));
    check(parts.length > 0, "no parts");
    for (const [cause, bytes] of parts) checkEqual(bytes, row[`cause_${cause}_bytes`], cause);
    checkEqual(parts.reduce((a, [, b]) => a + b, 0), missing, "the parts' sum");
    checkEqual(missing, row.shortfall_units * row.unit_bytes, "what was missing");
  }
});

test("refusals__groups__sums_of_the_log", async () => {
  const page = await open("static.html"), rows = csv("static/oom-log.csv");
  const found = await page.$$eval("#refusals-detail table", ts => Array.from(ts[0].tBodies[0].rows).map(r => Array.from(r.cells).map(c => c.textContent)));
  for (const [cls, primary, count] of found) checkEqual(Number(count.replace(/,/g, "")), rows.filter(r => r.class === cls && r.primary === primary).length, cls + " " + primary);
  checkEqual(found.reduce((a, r) => a + Number(r[2].replace(/,/g, "")), 0), rows.length, "all episodes");
});

test("requests__longest__times_of_the_events", async () => {
  const page = await open("prefix.html"), events = csv("prefix/events.csv");
  const [name, , , arrived, , first, ended] = await page.$eval("#requests tbody tr", r => Array.from(r.cells).map(c => c.dataset.sort === undefined ? c.textContent : Number(c.dataset.sort)));
  const of = kind => events.find(e => String(e.request) === name && e.event === kind).time_ns;
  checkEqual(arrived, of("arrive"), "arrived");
  checkEqual(first, of("first_token") - of("arrive"), "first token");
  checkEqual(ended, of("finish") - of("arrive"), "ended");
  checkEqual(await page.$eval("#requests tbody tr", r => r.cells[6].textContent), (ended / 1e9).toFixed(3) + " s", "ended, as shown");
  const lives = new Map();
  for (const e of events) if (e.event === "arrive") lives.set(e.request, -e.time_ns); else if (e.event === "finish") lives.set(e.request, lives.get(e.request) + e.time_ns);
  checkEqual(ended, Math.max(...lives.values()), "the longest");
  await page.locator("#requests thead").getByRole("button", { name: "ended after" }).click();
  const sorted = await page.$$eval("#requests tbody tr", rs => rs.map(r => Number(r.cells[6].dataset.sort)));
  check(sorted.every((v, i) => i === 0 || sorted[i - 1] <= v), "not sorted by the time itself");
});

/* Frames of a --memory-map file, and its header. */
const mapOf = name => text(name).trimEnd().split("\n").map(l => JSON.parse(l));
const slide = (page, i) => page.$eval("#map-slider", (s, v) => { s.value = String(v); s.dispatchEvent(new Event("input", { bubbles: true })); }, i);

test("map__slider__shows_the_frames_of_the_file", async () => {
  const page = await open("prefix.html"), [, ...frames] = mapOf("prefix/memory-map.jsonl");
  checkEqual(await page.getAttribute("#map-slider", "max"), String(frames.length - 1), "the slider's end");
  const pictures = new Set();
  for (const i of [0, Math.floor(frames.length / 2), frames.length - 1]) {
    await slide(page, i);
    pictures.add(await page.$eval("#map-grid", c => c.toDataURL()));
    const words = await page.textContent("#map-summary"), frame = frames[i], pool = Object.values(frame.states).reduce((a, b) => a + b, 0);
    check(words.includes(`${frame.running.length} request`), `${words}: ${frame.running.length} running`);
    check(frame.states.live === 0 || words.includes(`live ${(100 * (frame.states.live / pool)).toFixed(2)}\u00a0%`), words + ": live");
    check((await page.getAttribute("#map-slider", "aria-valuetext")).includes("after step"), "the slider says no time");
  }
  checkEqual(pictures.size, 3, "different pictures");
});

test("map__device__purposes_and_segments_of_the_file", async () => {
  const page = await open("device.html"), [, ...frames] = mapOf("device/memory-map.jsonl"), seen = new Set();
  for (const i of [0, frames.length - 1]) {
    await slide(page, i);
    const { bytes, segments } = frames[i].device, [purposes, drawn] = await page.$$eval("#map-device table", ts => ts.map(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))));
    for (const [k, [purpose, amount]] of Object.entries(bytes).entries()) {
      checkEqual(purposes[k][0], purpose, "purpose");
      checkEqual(Number(purposes[k][1].replaceAll(",", "")), amount, purpose);
    }
    checkEqual(drawn.length, segments.length, "segments");
    segments.forEach(([whole, ...blocks], k) => {
      checkEqual(Number(drawn[k][1].replaceAll(",", "")), whole, "segment " + k);
      checkEqual(Number(drawn[k][2].replaceAll(",", "")), blocks.reduce((sum, [b, used]) => used ? sum : sum + b, 0), "without use in " + k);
    });
    const widths = await page.$$eval("#map-device .bar", bars => bars.map(b => b.getBoundingClientRect().width));
    check(widths.length === 1 + segments.length && widths.every(w => w > 20), "bars: " + widths);
    seen.add(JSON.stringify([purposes, drawn]));
  }
  checkEqual(seen.size, 2, "different moments");
});

test("map__slider_keys__one_picture_on", async () => {
  const page = await open("prefix.html"), [, ...frames] = mapOf("prefix/memory-map.jsonl");
  await slide(page, 0);
  await page.focus("#map-slider");
  await page.keyboard.press("ArrowRight");
  check((await page.textContent("#map-summary")).includes(`step ${frames[1].step.toString().replace(/\B(?=(\d{3})+$)/g, ",")},`), "not the second frame");
  await page.getByRole("button", { name: "One picture back" }).click();
  check((await page.textContent("#map-summary")).includes(`step ${frames[0].step},`), "not the first frame");
});

/* The cells of a frame one by one, from the file's runs. */
const expand = frame => frame.cells.flatMap(([run, ...cell]) => Array(run).fill(cell));

test("map__hover_and_keys__what_the_file_says_of_a_block", async () => {
  const page = await open("prefix.html"), [header, ...frames] = mapOf("prefix/memory-map.jsonl");
  const i = Math.floor(frames.length / 2), cells = expand(frames[i]);
  checkEqual(header.units_per_cell, 1, "a cell is a block");
  await slide(page, i);
  await page.focus("#map-grid");
  await page.keyboard.press("Home");
  for (let b = 0; b < 40; b++) {
    const words = await page.textContent("#map-at"), [kind, request, holders, live] = cells[b];
    check(words.startsWith(`block ${b}: `), words);
    if (kind === 2) {
      const id = frames[i].running.find(r => r[0] === request)[1];
      check(words.includes(`request ${id}`) && (live === 0 || words.includes(` ${live} live`)) && (holders > 1) === words.includes("more sequence"), `${words}: ${cells[b]}`);
    } else {
      checkEqual(words, `block ${b}: ` + ["free", "cached", "", "overhead"][kind], "block " + b);
    }
    await page.keyboard.press("ArrowRight");
  }
  const box = await page.locator("#map-grid").boundingBox();
  await page.mouse.move(box.x + 3, box.y + 3);
  check((await page.textContent("#map-at")).startsWith("block 0: overhead"), "the null block under the pointer");
});

test("map__chosen_request__its_block_table", async () => {
  const page = await open("prefix.html"), [, ...frames] = mapOf("prefix/memory-map.jsonl");
  const i = Math.floor(frames.length / 2), [, id, filled, , blocks] = frames[i].running[0];
  await slide(page, i);
  const before = await page.$eval("#map-grid", c => c.toDataURL());
  await page.locator("#map-request").selectOption({ label: id });
  check(await page.$eval("#map-grid", c => c.toDataURL()) !== before, "its blocks are not marked");
  const rows = await page.$$eval("#map-table tbody tr", trs => trs.map(tr => [Number(tr.cells[0].textContent), Number(tr.cells[2].textContent.replace(/,/g, "")), parseInt(tr.cells[3].textContent)]));
  checkEqual(JSON.stringify(rows.map(r => r[1])), JSON.stringify(blocks), "physical blocks");
  checkEqual(rows.reduce((a, r) => a + r[2], 0), filled, "tokens filled");
});

test("map__colour_by_request__another_picture", async () => {
  const page = await open("static.html");
  await slide(page, 20);
  const before = await page.$eval("#map-grid", c => c.toDataURL());
  await page.getByLabel("Colour by").selectOption("request");
  check(await page.$eval("#map-grid", c => c.toDataURL()) !== before, "the same picture");
});

test("map__contiguous__region_of_a_request", async () => {
  const page = await open("static.html"), [, ...frames] = mapOf("static/memory-map.jsonl");
  await slide(page, 10);
  const [, id, , , [first, asked]] = frames[10].running[0];
  await page.locator("#map-request").selectOption({ label: id });
  const words = (await page.textContent("#map-table")).replace(/,/g, "");
  check(words.includes(`begins at slot ${first}: ${asked} slots asked`), words);
});

test("map__requests_as_a_table__slots_add_up", async () => {
  const page = await open("static.html"), [header, ...frames] = mapOf("static/memory-map.jsonl");
  await slide(page, 10);
  await page.locator("#map summary").click();
  await page.waitForSelector("#map details tbody");
  const live = await page.$$eval("#map details tbody tr", trs => trs.map(tr => Number(tr.cells[3].textContent.replace(/,/g, ""))).reduce((a, b) => a + b, 0));
  checkEqual(live * header.unit_bytes / header.unit_tokens, frames[10].states.live, "live");
});

test("compare__sweep__means_of_the_seeds", async () => {
  const page = await open("sweep.html"), rows = text("sweep.jsonl").trimEnd().split("\n").map(l => JSON.parse(l));
  for (const figure of ["utilization", "ttft_ns.p99"]) {
    await page.getByLabel("Figure").selectOption(figure);
    for (const [i, size] of [1, 16, 256].entries()) {
      await page.locator("#plot-compare").scrollIntoViewIfNeeded();
      const at = await pixel(page, "plot-compare", i);
      await page.mouse.move(at.x, at.y);
      for (const [policy, value] of Object.entries(await values(page, "plot-compare"))) {
        const cells = rows.filter(r => r.policy === policy && r["options.block-size"] === size).map(r => r[figure]);
        checkEqual(cells.length, 2, "seeds");
        checkNear(value, (cells[0] + cells[1]) / 2, 1e-9 * Math.abs(cells[0]), `${figure} of ${policy} at ${size}`);
      }
    }
  }
});

test("compare__all_results__every_figure_of_each", async () => {
  const page = await open("sweep.html"), rows = text("sweep.jsonl").trimEnd().split("\n").map(l => JSON.parse(l));
  await page.locator("#compare summary", { hasText: "All results" }).click();
  await page.waitForSelector("#compare details:last-of-type table");
  const found = await page.$eval("#compare details:last-of-type table", t => {
    const heads = Array.from(t.tHead.rows[0].cells).map(c => c.textContent), at = name => heads.indexOf(name);
    return Array.from(t.tBodies[0].rows).map(r => [r.cells[at("kv_usage")].dataset.sort, r.cells[at("e2e_ns.p99")].dataset.sort].map(Number));
  });
  checkEqual(found.length, rows.length, "rows");
  const sorted = list => JSON.stringify(list.map(String).sort());
  checkEqual(sorted(found), sorted(rows.map(r => [r.kv_usage, r["e2e_ns.p99"]])), "figures");
});

test("compare__bars__a_bar_a_result", async () => {
  const page = await open("two.html"), result = JSON.parse(text("prefix/result.json"));
  await page.getByLabel("Figure").selectOption("kv_usage");
  const cells = await page.$$eval("#compare tbody tr", trs => trs.map(tr => [tr.cells[0].textContent, tr.cells[1].textContent]));
  checkEqual(cells.find(c => c[0].startsWith("prefix"))[1], (100 * result.kv_usage).toFixed(2) + " %", "kv_usage of prefix");
});

test("sort__results__by_a_column_both_ways", async () => {
  const page = await open("sweep.html");
  const head = page.locator("#results-table thead").getByRole("button", { name: "live" });
  const column = () => page.$eval("#results-table", t => {
    const at = Array.from(t.tHead.rows[0].cells).findIndex(c => c.textContent === "live");
    return Array.from(t.tBodies[0].rows).map(r => parseFloat(r.cells[at].textContent));
  });
  await head.click();
  const up = await column();
  check(up.every((v, i) => i === 0 || up[i - 1] <= v), "not ascending: " + up);
  await head.press("Enter");
  const down = await column();
  check(down.every((v, i) => i === 0 || down[i - 1] >= v) && down[0] > down[down.length - 1], "not descending: " + down);
});

test("table__of_a_plot__has_its_values", async () => {
  const page = await open("static.html"), rows = csv("static/timeline.csv");
  await page.getByLabel("Unit").selectOption("bytes");
  await page.locator("figure:has(#plot-states) summary").click();
  await page.waitForSelector("figure:has(#plot-states) tbody");
  const cells = await page.$$eval("figure:has(#plot-states) tbody tr", trs => trs.slice(0, 2).map(tr => Array.from(tr.cells).map(c => c.textContent)));
  checkEqual(cells[0][1], (rows[0].live_bytes / 2 ** 20).toFixed(rows[0].live_bytes < 10 * 2 ** 20 ? 2 : 1) + " MiB", "live of the first row");
});

for (const width of [400, 800, 1600]) {
  test(`width__${width}__nothing_sticks_out`, async () => {
    for (const name of ["static.html", "two.html", "sweep.html", "device.html"]) {
      const page = await open(name, { width });
      const extent = await page.evaluate(() => document.documentElement.scrollWidth);
      check(extent <= width, `${name} is ${extent} pixels wide`);
    }
  });
}

test("names__everything_that_can_be_focused_has_one", async () => {
  for (const name of ["two.html", "sweep.html"]) {
    const page = await open(name);
    const nameless = await page.$$eval("button, select, a, [tabindex], input, summary", nodes => nodes.filter(n => {
      const label = n.getAttribute("aria-label") || n.textContent.trim() || (n.labels && Array.from(n.labels).map(l => l.textContent).join(""));
      return !label && !n.closest("[hidden]");
    }).map(n => n.outerHTML.slice(0, 80)));
    checkEqual(nameless.join("\n"), "", name + ": without a name");
    const levels = await page.$$eval("h1, h2, h3", hs => hs.filter(h => !h.closest("[hidden]")).map(h => Number(h.tagName[1])));
    checkEqual(levels.filter(l => l === 1).length, 1, "main headings");
    check(levels.every((l, i) => i === 0 || l <= levels[i - 1] + 1), "a level of headings is left out");
  }
});

for (const scheme of ["light", "dark"]) {
  test(`accessibility__${scheme}__nothing_is_found`, async () => {
    for (const name of ["prefix.html", "two.html", "sweep.html", "device.html"]) {
      const page = await open(name, { scheme });
      await page.locator("summary").first().click();
      await page.waitForSelector("details[open] table");
      checkEqual(await inaccessible(page), "", name);
    }
  });
}

test("no_script__answer_and_tables_can_be_read", async () => {
  const page = await open("static.html", { script: false });
  check(await page.locator("#answer .lead").isVisible(), "no answer");
  check(await page.locator("#balance-table").isVisible(), "no balance sheet");
  check((await page.textContent("#options")).includes("--pool-tokens"), "no options");
});

test("no_library__tables_stand_for_plots", async () => {
  const whole = text("static.html"), from = whole.indexOf("<script>", whole.indexOf("The MIT License")), to = whole.indexOf("</script>", from);
  check(from > 0, "no library in the page: was the program built without it?");
  writeFileSync(file("bare.html"), whole.slice(0, from) + whole.slice(to + "</script>".length));
  const page = await open("bare.html");
  check(await page.locator("figure details[open] table").count() >= 2, "no tables");
});

test("print__light_and_whole", async () => {
  const page = await open("static.html", { scheme: "dark" });
  const pdf = await page.pdf({ format: "A4" });
  check(pdf.length > 20000, `${pdf.length} bytes`);
  await page.emulateMedia({ media: "print" });
  checkEqual(await page.locator("nav").isVisible(), false, "the links");
  check(await page.locator("#balance-table").isVisible(), "no balance sheet");
});

test("hostile_names__are_only_text", async () => {
  const bad = "</script><img src=x onerror=alert(1)>";
  writeFileSync(file("hostile.jsonl"), [0, 1, 2, 3].map(i => JSON.stringify({ id: bad + i, arrival_ns: i, prompt_tokens: 100, output_tokens: 9 })).join("\n") + "\n");
  pagesim("run", file("hostile.jsonl"), "--policy", "static", "--pool-tokens", "120", "--max-model-len", "110", "--report", file("hostile.html"));
  const page = await open("hostile.html");
  checkEqual(await page.locator("img").count(), 0, "images");
  check((await page.textContent("#requests")).includes(bad), "the name is not shown as it is");
});

test("million_events__opens_and_answers", async () => {
  pagesim("run", "gen:requests=30000,arrivals=poisson:400,prompt-tokens=200,output-tokens=100", "--policy", "dynamic", "--block-size", "4", "--pool-tokens", "30000", "--report", file("big.html"));
  const began = Date.now(), page = await open("big.html");
  await page.focus("#plot-states");
  await page.keyboard.press("End");
  check((await shown(page, "plot-states")).live.includes("%"), "no value");
  check(Date.now() - began < 15000, `took ${Date.now() - began} ms`);
  check((await page.textContent("#thinned")).includes("to a point"), "thinning is not said");
});

await runAll();
