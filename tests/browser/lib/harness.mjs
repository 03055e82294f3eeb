// The harness of the tests in chromium: servers, tests, checks, TAP. A complaint in the console, an error of the page
// or a violation of the Content-Security-Policy, in any tab, fails the test in which it happens.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const HERE = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const ROOT = resolve(HERE, "../..");
export const DRAGOMAN = resolve(ROOT, process.env.DRAGOMAN ?? "build/dragoman");
export const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
export const PATIENCE = 60000; // ms; what happens, happens long before

export function start(...args) {
  const child = spawn(DRAGOMAN, ["serve", "--listen", "127.0.0.1:0", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const server = { child, log: "" };
  child.stderr.on("data", (d) => (server.log += d));
  return new Promise((done, fail) => {
    let out = "";
    child.stdout.on("data", (d) => {
      out += d;
      const m = out.match(/listening on (http:\S+)/);
      if (m) done(Object.assign(server, { url: m[1] }));
    });
    child.on("exit", (code) => fail(new Error(`the server ended with ${code}: ${server.log}`)));
  });
}

export function end(server) {
  return new Promise((done) => {
    server.child.removeAllListeners("exit");
    server.child.on("exit", (code) => done(code));
    server.child.kill("SIGTERM");
  });
}

export const pause = (ms) => new Promise((r) => setTimeout(r, ms));
export const check = (good, why) => { if (!good) throw new Error(why); };
export const show = (v) => String(JSON.stringify(v)).slice(0, 500);
export const same = (got, want, what) => check(got === want, `${what} is ${show(got)}, wanted ${show(want)}`);
export const same_json = (got, want, what) => same(JSON.stringify(got), JSON.stringify(want), what);
export const contains = (text, part) => check(text.includes(part), `no ${JSON.stringify(part)} in ${show(text)}`);

// Waits until fn() is true or returns something; the page's Content-Security-Policy forbids waitForFunction.
export async function until(fn, what) {
  for (const last = Date.now() + PATIENCE; ; await pause(50)) {
    const found = await fn();
    if (found) return found;
    check(Date.now() < last, `it did not happen: ${what}`);
  }
}

// Runs tests: [{name, run({page, context, server, complaints})}]. options: server arguments, size and settings of the
// context, allowed: complaints that are expected.
export async function run_tests(tests, { args, viewport = { width: 1280, height: 800 }, allowed = () => false, more = {} }) {
  const words = process.argv.slice(2);
  const chosen = tests.filter((t) => !words.length || words.some((w) => t.name.includes(w)));
  console.log(`1..${chosen.length + 1}`);
  if (!CHROMIUM) { console.log("Bail out! there is no chromium: scripts/setup test installs it"); process.exit(1); }
  const server = await start(...args);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  let n = 0, failed = 0;
  for (const t of chosen) {
    const context = await browser.newContext({ viewport, acceptDownloads: true, ...more, ...t.context });
    context.setDefaultTimeout(Number(process.env.WAIT ?? PATIENCE));
    const complaints = [];
    context.on("weberror", (e) => complaints.push(e.error().message));
    context.on("console", (m) => { if (m.type() === "error" && !allowed(m) && !t.allowed?.test(m.text())) complaints.push(m.text()); });
    await context.exposeBinding("report_violation", (_, text) => complaints.push(text)); // whatever else is allowed
    await context.addInitScript(() => addEventListener("securitypolicyviolation", (e) => window.report_violation(`Content-Security-Policy: ${e.effectiveDirective} refused ${e.blockedURI}`)));
    const page = await context.newPage();
    try {
      await t.run({ page, context, server, complaints, browser });
      same(complaints.join("\n"), "", "the console");
      console.log(`ok ${++n} - ${t.name}`);
    } catch (e) {
      failed++;
      console.log(`not ok ${++n} - ${t.name}\n${[...String(e.message).split("\n").slice(0, 12), ...complaints.slice(0, 5)].map((l) => `# ${l}`).join("\n")}`);
    }
    if (process.env.SHOTS) {
      mkdirSync(process.env.SHOTS, { recursive: true });
      await page.screenshot({ path: join(process.env.SHOTS, `${t.name.replace(/[^a-z0-9]+/gi, "-").slice(0, 80)}.png`) }).catch(() => {});
    }
    await context.close();
  }
  await browser.close();
  const status = await end(server);
  console.log(`${status === 0 ? "ok" : "not ok"} ${++n} - the server ends well`);
  if (status) console.log(server.log.split("\n").slice(-20).map((l) => `# ${l}`).join("\n"));
  process.exit(failed || status ? 1 : 0);
}
