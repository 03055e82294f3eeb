#!/usr/bin/env node
// `make pictures`: the pictures of docs/pictures, taken of the page in chromium in front of the built-in agents.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { CHROMIUM, end, pause, ROOT, start, until } from "./lib/harness.mjs";

const OUT = join(ROOT, "docs/pictures"), folder = mkdtempSync(join(tmpdir(), "dragoman-pictures-"));
const DESKTOP = { width: 1200, height: 760 }, TALL = { width: 1200, height: 920 }, WIDE = { width: 1640, height: 960 }, PHONE = { width: 390, height: 780 };
mkdirSync(OUT, { recursive: true });
writeFileSync(join(folder, "dragoman.yaml"), JSON.stringify({ store: "memory:", agents: [{ id: "demo", type: "demo", default: true }, { id: "hello", type: "hello" }] }));

const server = await start("-c", join(folder, "dragoman.yaml"));
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

async function conversation(page, ...words) {
  await page.goto(`${server.url}/agents/demo/`);
  await page.waitForSelector("#composer-text");
  for (const [i, text] of words.entries()) {
    await page.fill("#composer-text", text);
    await page.press("#composer-text", "Enter");
    await until(() => page.evaluate((n) => { const all = document.querySelectorAll("article.agent"); return all.length === n && all[n - 1].getAttribute("aria-busy") === "false"; }, i + 1), `the answer to ${text}`);
  }
}
const open_folds = (page, selector) => page.evaluate((s) => document.querySelectorAll(s).forEach((e) => (e.open = true)), selector);

async function inspect(page) {
  await conversation(page, "tools");
  const task = await page.evaluate(async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: { pageSize: 1 } });
    const r = await fetch("/", { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" }, body });
    return (await r.json()).result.tasks[0].id;
  });
  await page.goto(`${server.url}/inspect/${task}`);
  await page.waitForSelector("main [aria-rowcount]");
  await page.getByRole("button", { name: "Details" }).click(); // room for the columns
  await page.focus("main .grid");
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowDown"); // the result of the tool
}

const PICTURES = {
  talk: [DESKTOP, "light", (page) => conversation(page, "reasoning", "file")],
  tools: [TALL, "light", async (page) => { await conversation(page, "tools", "state"); await open_folds(page, "article.agent details.tool-card"); }],
  inspector: [WIDE, "light", inspect],
  compare: [DESKTOP, "light", (page) => page.goto(`${server.url}/compare`).then(() => page.waitForSelector("main h2"))],
  phone: [PHONE, "light", (page) => conversation(page, "subagent", "interrupt")],
  dark: [DESKTOP, "dark", (page) => conversation(page, "parallel-tools", "usage")],
};

try {
  for (const [name, [viewport, colorScheme, prepare]] of Object.entries(PICTURES)) {
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" }), page = await context.newPage();
    await prepare(page);
    await page.evaluate(() => document.activeElement?.blur());
    await pause(1500);
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    console.log(`docs/pictures/${name}.png`);
    await context.close();
  }
} finally {
  await browser.close();
  await end(server);
  rmSync(folder, { recursive: true });
}
