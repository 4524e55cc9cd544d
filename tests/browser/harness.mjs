/* What the browser tests share: a browser, a folder for files, the program, and counts as scripts/run_tests.sh prints
 * them. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..", "..");
const CHROMIUM = process.env.CHROMIUM || "/usr/bin/chromium";
const PROGRAM = process.env.PAGESIM_BIN || join(ROOT, "build/release/pagesim");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

function driver() {
  try {
    return createRequire(join(ROOT, "sim/page/package.json"))("playwright-core").chromium;
  } catch {
    return null;
  }
}

/* What a checker of accessibility finds wrong with a page, a line each. */
export async function inaccessible(page) {
  await page.evaluate(readFileSync(join(ROOT, "sim/page/node_modules/axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 100)).join("; ")).join("\n");
}

export class Failure extends Error {}

export function check(condition, message) {
  if (!condition) throw new Failure(message);
}

export function checkEqual(found, expected, what) {
  const short = v => JSON.stringify(v).slice(0, 200);
  check(found === expected, `${what}: found ${short(found)}, expected ${short(expected)}`);
}

/* Absolute tolerance. */
export function checkNear(found, expected, tolerance, what) {
  check(Math.abs(found - expected) <= tolerance, `${what}: found ${found}, expected ${expected} ± ${tolerance}`);
}

export const folder = mkdtempSync(join(tmpdir(), "pagesim-browser-"));

export function file(name) {
  return join(folder, name);
}

export function pagesim(...args) {
  return execFileSync(PROGRAM, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
}

export function text(name) {
  return readFileSync(file(name), "utf8");
}

/* Rows of a CSV file without quotes, as objects; numbers where a field is one. */
export function csv(name) {
  const [head, ...lines] = text(name).trimEnd().split("\n");
  const names = head.split(",");
  return lines.map(line => Object.fromEntries(line.split(",").map((v, i) => [names[i], v !== "" && Number.isFinite(Number(v)) ? Number(v) : v])));
}

const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

let browser = null;

/* Opens a page of the folder. Whatever the console calls an error, and whatever it asks of a network, fails the test. */
export async function open(name, { width = 1200, height = 900, scheme = "light", script = true } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: script });
  const page = await context.newPage();
  page.trouble = [];
  page.on("console", m => { if (["error", "warning"].includes(m.type())) page.trouble.push(m.text()); });
  page.on("pageerror", e => page.trouble.push(String(e)));
  page.on("dialog", d => { page.trouble.push("dialog: " + d.message()); d.dismiss(); });
  page.on("request", r => { if (!r.url().startsWith("file:")) page.trouble.push("asked for " + r.url()); });
  await page.goto("file://" + file(name));
  if (script) await page.waitForSelector("html[data-ready]", { timeout: 20000, state: "attached" });
  opened.push(page);
  return page;
}

let opened = [];

async function runOne({ name, run }) {
  opened = [];
  try {
    await run();
    for (const page of opened) check(page.trouble.length === 0, "the page's console: " + page.trouble.join("; "));
    console.log("ok    " + name);
    return true;
  } catch (e) {
    console.log("FAIL  " + name);
    console.log("      " + (e instanceof Failure ? e.message : e.stack));
    return false;
  } finally {
    for (const page of opened) await page.context().close();
  }
}

/* A headless browser; the driver makes a fresh folder for the user's data at each start. */
export async function launch() {
  const chromium = driver();
  if (!chromium || !existsSync(CHROMIUM)) {
    console.error("browser tests: found no " + (chromium ? CHROMIUM : "playwright-core in sim/page/node_modules") + "; scripts/setup.sh --full installs it");
    process.exit(1);
  }
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

export async function runAll() {
  let passed = 0, failed = 0;
  browser = await launch();
  try {
    for (const t of tests) (await runOne(t)) ? passed++ : failed++;
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${passed} passed, ${failed} failed, 0 skipped`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
