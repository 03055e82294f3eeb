#!/usr/bin/env node
// Measures the page in chromium beside a bare reader and an empty page of the same server, and writes a part of docs/performance.md.
//
// usage: tests/bench/page.mjs [--rounds N] [--dry]      (--dry: leaves docs/performance.md alone)
//
// Each figure is the median of the rounds; within a round the page and what it is compared with follow each other. Tasks of the main
// thread that take longer than 50 ms are those that the browser itself reports (PerformanceObserver, "longtask").
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const { chromium } = createRequire(`${ROOT}/tests/browser/`)("playwright-core");
const DRAGOMAN = resolve(ROOT, process.env.DRAGOMAN ?? "build/dragoman");
const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const option = (name, other) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : other);
const ROUNDS = Number(option("--rounds", 5)), CHUNKS = 10000, RECORDS = 2000, LONG_MS = 50;

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const number = (n) => (n >= 100 ? n.toFixed(0) : n.toFixed(1));

function start() {
  const child = spawn(DRAGOMAN, ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--agent", "bench"], { stdio: ["ignore", "pipe", "ignore"] });
  return new Promise((done, fail) => {
    let out = "";
    child.stdout.on("data", (d) => {
      const m = (out += d).match(/listening on (http:\S+)/);
      if (m) done({ child, url: m[1] });
    });
    child.on("exit", (code) => fail(new Error(`the server ended with ${code}`)));
  });
}

// A tab of its own, nothing cached, in which the browser reports long tasks.
async function in_tab(browser, run) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(() => {
    window.long_tasks = [];
    new PerformanceObserver((list) => window.long_tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
  });
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  try { return await run(page); } finally { await context.close(); }
}
const frames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))));
const first_paint = (page) => page.evaluate(() => new Promise((done) => {
  const found = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const look = () => (found() === undefined ? setTimeout(look, 10) : done(found()));
  look();
}));

// ---- what is measured ---------------------------------------------------------------------------------------------------------

// The events as they are read without anything being done with them.
const bare_reader = (browser, url) => in_tab(browser, async (page) => {
  await page.goto(`${url}/healthz`);
  return page.evaluate(async (text) => {
    const from = performance.now();
    const response = await fetch("/ag-ui", { method: "POST", headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ threadId: crypto.randomUUID(), runId: crypto.randomUUID(), state: {}, messages: [{ id: "m1", role: "user", content: text }], tools: [], context: [], forwardedProps: {} }) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let n = 0, rest = "";
    for (let r; !(r = await reader.read()).done;) {
      const events = (rest + r.value).split("\n\n");
      rest = events.pop();
      n += events.length;
    }
    if (n < 10000) throw new Error(`the stream had ${n} events`);
    return performance.now() - from;
  }, `chunks ${CHUNKS} yield`);
});

const talk = (browser, url) => in_tab(browser, async (page) => {
  await page.goto(url);
  await page.waitForSelector("#composer-text");
  await frames(page);
  await page.fill("#composer-text", `chunks ${CHUNKS} yield`);
  await page.evaluate((last) => {
    window.long_tasks.length = 0;
    window.measured = new Promise((done) => addEventListener("keydown", () => {
      const from = performance.now();
      const look = () => {
        const answer = document.querySelector("article.agent");
        if (answer?.getAttribute("aria-busy") === "false" && answer.querySelector(".md")?.textContent.trimEnd().endsWith(last)) done(performance.now() - from);
        else requestAnimationFrame(look);
      };
      look();
    }, { once: true, capture: true }));
  }, String(CHUNKS));
  await page.press("#composer-text", "Enter");
  const ms = await page.evaluate(() => window.measured);
  await frames(page);
  return { ms, long: await page.evaluate(() => Math.max(0, ...window.long_tasks)) };
});

const inspector = (browser, url, task) => in_tab(browser, async (page) => {
  await page.goto(`${url}/inspect/${task}`);
  for (let n = 0; n < RECORDS;) {
    n = await page.evaluate(() => Number(document.querySelector("main [aria-rowcount]")?.getAttribute("aria-rowcount") ?? 0));
    await page.waitForTimeout(50);
  }
  await frames(page);
  const grid = page.locator("main [aria-rowcount]").first();
  const box = await grid.boundingBox();
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
  await page.evaluate(() => { window.long_tasks.length = 0; });
  const top = () => page.evaluate(() => Math.max(0, ...[...document.querySelectorAll("main *")].map((e) => e.scrollTop)));
  let last = -1, n = 0;
  for (let now = 0; now !== last || n < 5; n++) {
    last = now;
    for (let i = 0; i < 10; i++) {
      await page.mouse.wheel(0, 700);
      await page.waitForTimeout(16);
    }
    await page.waitForTimeout(50);
    now = await top();
  }
  if (last < 10000) throw new Error(`the inspector scrolled to ${last} pixels only`);
  await frames(page);
  return page.evaluate(() => Math.max(0, ...window.long_tasks));
});

const paint = (browser, address) => in_tab(browser, async (page) => {
  await page.goto(address);
  return first_paint(page);
});

// ---- the run ------------------------------------------------------------------------------------------------------------------------

const server = await start();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const load = loadavg()[0];
try {
  const created = await (await fetch(server.url, { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: `chunks ${RECORDS}` }] } } }) })).json();
  const task = created.result.task.id;
  const seen = { bare: [], talk: [], talk_long: [], scroll: [], page: [], empty: [] };
  await paint(browser, server.url); // the browser's own caches
  for (let i = 0; i < ROUNDS; i++) {
    seen.bare.push(await bare_reader(browser, server.url));
    const t = await talk(browser, server.url);
    seen.talk.push(t.ms);
    seen.talk_long.push(t.long);
    seen.scroll.push(await inspector(browser, server.url, task));
    seen.empty.push(await paint(browser, `${server.url}/healthz`));
    seen.page.push(await paint(browser, server.url));
    console.log(`round ${i + 1}: ${Object.entries(seen).map(([k, v]) => `${k} ${number(v.at(-1))} ms`).join(", ")}`);
  }
  const ratio = median(seen.talk.map((t, i) => t / seen.bare[i])), later = median(seen.page.map((p, i) => p - seen.empty[i]));
  const longest = (list) => (median(list) ? `${number(median(list))}` : "none");
  const rows = [
    [`an answer of ${CHUNKS.toLocaleString("en")} chunks, from the key to the last word on the page`, `${number(median(seen.talk))} ms`, `${number(median(seen.bare))} ms (a bare reader)`, `${ratio.toFixed(2)}`, "at most 3", ratio <= 3],
    ["its longest task of the main thread above 50 ms", longest(seen.talk_long), "", "", "none", median(seen.talk_long) <= LONG_MS],
    [`the inspector scrolls through ${RECORDS.toLocaleString("en")} records: longest task above 50 ms`, longest(seen.scroll), "", "", "none", median(seen.scroll) <= LONG_MS],
    ["first paint, nothing cached", `${number(median(seen.page))} ms`, `${number(median(seen.empty))} ms (an empty page)`, `${later >= 0 ? "+" : ""}${number(later)} ms`, "at most +100 ms", later <= 100],
  ];
  console.log();
  for (const [what, ours, other, compared, goal, good] of rows) console.log(`${good ? "PASS" : "MISS"}  ${what}: ${ours}${other && ` beside ${other}`}${compared && `, ${compared}`} (${goal})`);
  if (!process.argv.includes("--dry")) {
    const path = `${ROOT}/docs/performance.md`, text = readFileSync(path, "utf8");
    const part = ["<!-- begin: written by tests/bench/page.mjs (`make bench-page`) -->", "## The page", "",
      `Measured ${new Date().toISOString().slice(0, 10)} in one run, medians of ${ROUNDS} rounds, in chromium ${browser.version()} on the machine of the server (${cpus().length} cores). A bare reader`,
      "reads the same events in the same browser and does nothing with them; an empty page is one of the same server with one word. Long tasks",
      "are those that the browser reports.", "", "| what | the page | other | compared | goal | |", "|---|---|---|---|---|---|",
      ...rows.map(([what, ours, other, compared, goal, good]) => `| ${[what, ours, other, compared, goal, good ? "PASS" : "MISS"].join(" | ")} |`), "",
      ...(load > 0.5 ? [`The machine was not idle: its load was ${load.toFixed(1)} when the run began.`, ""] : []), "<!-- end -->"].join("\n");
    const old = /<!-- begin: written by tests\/bench\/page\.mjs[\s\S]*?<!-- end -->/;
    if (!old.test(text)) throw new Error("docs/performance.md has no part for the page");
    writeFileSync(path, text.replace(old, () => part));
    console.log("\nwrote docs/performance.md");
  }
  process.exitCode = rows.every((r) => r.at(-1)) ? 0 : 1;
} finally {
  await browser.close();
  server.child.removeAllListeners("exit");
  server.child.kill("SIGTERM");
}
