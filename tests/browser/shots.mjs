/* Pictures of a page, for people to look at: three widths, both themes.
 *
 *   node tests/browser/shots.mjs PAGE.html FOLDER
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./harness.mjs";

const [file, folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node tests/browser/shots.mjs PAGE.html FOLDER");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const colorScheme of ["light", "dark"]) {
  for (const width of [400, 800, 1600]) {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    await page.goto(pathToFileURL(resolve(file)).href);
    await page.waitForSelector("html[data-ready]", { state: "attached" });
    await page.screenshot({ path: join(folder, `${width}-${colorScheme}.png`), fullPage: true });
    await page.close();
  }
}
await browser.close();
