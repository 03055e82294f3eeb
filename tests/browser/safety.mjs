// What no agent may do to the page, and whether everybody can use it: hostile agents, axe-core, the size of a screen. TAP.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, contains, HERE, pause, run_tests, same, show, until } from "./lib/harness.mjs";

const AXE = readFileSync(join(HERE, "node_modules/axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
const config = join(folder, "dragoman.yaml");
const IMITATION = "\u202eDragoman\u202c <img src=x onerror=window.hacked=20>";
writeFileSync(config, JSON.stringify({
  store: "memory:", inspect: "owner",
  agents: [
    { id: "demo", type: "demo", default: true, settings: { pace: 0.01 } },
    { id: "hostile", type: "exec", card: { name: IMITATION, description: IMITATION, skills: [{ id: "x", name: IMITATION, description: IMITATION, tags: [IMITATION], examples: [IMITATION] }] },
      settings: { command: ["python3", join(HERE, "hostile.py")] } },
  ],
}));

// What the browser refuses, and whether a script of an agent has run. The page cannot remove it: it is there before the page.
async function watch(context) {
  await context.addInitScript(() => {
    window.refused = [];
    addEventListener("securitypolicyviolation", (e) => window.refused.push(`${e.effectiveDirective} ${e.blockedURI}`));
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((e) => Math.round(e.duration)))).observe({ type: "longtask", buffered: true });
  });
}
async function is_unharmed(page) {
  same(show(await page.evaluate(() => window.refused)), "[]", "what the policy of the page refused");
  same(await page.evaluate(() => window.hacked ?? "no"), "no", "scripts of the agent ran");
  same(await page.evaluate(() => ({}).polluted ?? "no"), "no", "Object.prototype has a member of the agent");
  const links = await page.evaluate(() => [...document.querySelectorAll("a[href], iframe[src], object[data], embed[src], img[src], form[action]")].map((e) => e.href ?? e.src ?? e.data ?? e.action));
  for (const l of links) check(/^(https?|mailto|blob):/.test(l), `an address of the page is ${l}`);
  const foreign = await page.evaluate(() => performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("blob:")));
  same(show(foreign), "[]", "requests to other servers");
}

async function open(page, server, agent) {
  await watch(page.context());
  await page.goto(`${server.url}/agents/${agent}/`);
  await page.locator(".welcome h2").waitFor(); // a text that is written before the agent is known is not sent
}
async function send(page, text) {
  await page.fill("#composer-text", text);
  await page.press("#composer-text", "Enter");
}
const is_over = (page) => until(() => page.locator("article.agent").last().getAttribute("aria-busy").then((b) => b === "false"), "the end of the answer");
const open_folds = (page) => page.evaluate(() => document.querySelectorAll("article.agent details").forEach((e) => (e.open = true)));
// Not getByText: it reads all 8 MiB of the page for every element.
const has_answer = (page) => until(() => page.evaluate(() => [...document.querySelectorAll("article.agent")].at(-1)?.textContent.includes("You said still there?")), "another answer");
// The page still works: another message has an answer.
async function is_usable(page) {
  await send(page, "still there?");
  await has_answer(page);
}

// ---- accessibility --------------------------------------------------------------------------------------------------------------

async function has_no_violations(page, what) {
  await until(() => page.locator("[aria-busy=true]").count().then((n) => n === 0), `${what}: the end of what loads`); // it is pale until then
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${(n.any[0] ?? n.all[0] ?? n.none[0])?.message?.slice(0, 120) ?? ""}`).join(" | ")}`);
  });
  check(!found.length, `${what}:\n${found.join("\n")}`);
}

const TALKS = ["reasoning", "tools", "state", "file", "data", "subagent", "usage", "long 30", "fail", "interrupt"];
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

const tests = [];
for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ["light", "dark"]) {
    tests.push({
      name: `axe-core finds nothing: talk, inspector, compare and operate, ${size}, ${colorScheme}`,
      context: { viewport, colorScheme, reducedMotion: "reduce" },
      run: async ({ page, server }) => {
        await open(page, server, "demo");
        await has_no_violations(page, "an empty conversation");
        await page.click("#tools");
        await page.fill("#tools-text", "[");
        await page.click("#tools-save");
        await page.locator("#tools-error:visible").waitFor();
        await has_no_violations(page, "the dialog with the tools of the page");
        const dialog = await page.evaluate(() => { const d = document.querySelector(".tools-dialog"), r = d.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && r.bottom <= innerHeight && d.scrollWidth <= d.clientWidth; });
        check(dialog, "the dialog with the tools is larger than the screen");
        await page.fill("#tools-text", "");
        await page.click("#tools-example");
        await page.click("#tools-save");
        await send(page, "client-tool");
        await page.locator("form.tool-result select").waitFor();
        await has_no_violations(page, "the form of a tool of the page");
        await page.goto(`${server.url}/agents/demo/`);
        await page.locator(".welcome h2").waitFor();
        for (const t of TALKS) {
          await send(page, t);
          await until(() => page.locator("article.agent").count().then((n) => n === TALKS.indexOf(t) + 1), `the answer to ${t}`);
          await is_over(page);
        }
        await open_folds(page);
        await has_no_violations(page, "a conversation");
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        check(overflow <= 0, `the page is ${overflow} pixels wider than the screen`);
        await page.click("#about");
        await page.locator(".card-dialog[open]").waitFor();
        await has_no_violations(page, "the dialog about an agent");
        await page.keyboard.press("Escape");
        await page.locator(".inspect-turn").first().click();
        await page.locator("#drawer .grid .body .row").first().waitFor();
        await has_no_violations(page, "the inspector in the drawer");
        await page.click("#drawer > .view-header .icon-button");
        if (size === "phone") {
          await page.locator("#view .view-header .icon-button").first().click();
          await page.locator("#conversations .conversation").first().waitFor();
          await has_no_violations(page, "the panel on a small screen");
          await page.locator("#side .brand .icon-button").click();
        }
        const task = await page.evaluate(async () => (await (await fetch("/", { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: { pageSize: 1 } }) })).json()).result.tasks[0].id);
        for (const [path, ready] of [[`/inspect/${task}`, "main [role=grid], main table, main .row, main .rows"], ["/inspect", "main button"], ["/compare", "main button"], ["/operate", "main h2, main h1, main .note"], ["/agents/nobody/", "#composer-text, main .note"]]) {
          await page.goto(server.url + path);
          await page.locator(ready).first().waitFor({ state: "attached" });
          await pause(300);
          await has_no_violations(page, path);
          const wide = await page.evaluate(() => [...document.querySelectorAll("#view, #view > *, #side")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => `${e.localName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`));
          same(show(wide), "[]", `parts of ${path} that are wider than the screen`);
          for (const menu of await page.locator("details.menu:visible").all()) {
            await menu.locator("summary").click();
            const list = await menu.locator(".menu-list").boundingBox();
            check(list.x >= 0 && list.x + list.width <= viewport.width, `a menu of ${path} is not on the screen: ${show(list)}`);
            await menu.locator("summary").click();
          }
        }
        await is_unharmed(page);
      },
      allowed: /status of 404/, // an agent that does not exist
    });
  }
}

// ---- hostile agents -----------------------------------------------------------------------------------------------------------------

const hostile = (name, run, more = {}) => tests.push({ name, ...more, run: async (t) => {
  await open(t.page, t.server, "hostile");
  await run(t);
  await is_unharmed(t.page);
} });

hostile("HTML, scripts and links of an agent are text, wherever it writes them", async ({ page, server }) => {
  await send(page, "html");
  await is_over(page);
  await open_folds(page);
  await pause(300);
  contains(await page.locator("article.agent").last().innerText(), "<script>window.hacked=1</script>");
  const found = await page.evaluate(() => [...document.querySelectorAll("main script, main svg[onload], main iframe[srcdoc], main [onerror], main img[src='x'], main style, main link, main base")].length);
  same(found, 0, "elements of the agent");
  const links = await page.evaluate(() => [...document.querySelectorAll("main .md a")].map((a) => [a.protocol, a.rel, a.target]));
  check(links.length >= 2, links);
  for (const [protocol, rel, target] of links) same(`${protocol} ${rel} ${target}`, "https: noopener noreferrer _blank", "a link");
  // the damaged PDF: the viewer of the browser would take the focus, and Enter would reload the page
  await page.locator(".file-part", { hasText: "a.pdf" }).scrollIntoViewIfNeeded();
  await page.focus("#composer-text");
  await pause(2000);
  same(await page.evaluate(() => document.activeElement.id), "composer-text", "the element with the focus");
  await is_usable(page);
  await page.reload();
  await has_answer(page);
  const task = await page.evaluate(async () => (await (await fetch("/agents/hostile/", { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: { pageSize: 9 } }) })).json()).result.tasks.at(-1).id);
  await is_unharmed(page);
  await page.goto(`${server.url}/inspect/${task}`);
  await page.waitForSelector("main");
  await pause(1000);
});

hostile("names that imitate ours, control characters and right-to-left overrides change nothing around them", async ({ page }) => {
  await send(page, "names");
  await is_over(page);
  const bad = await page.evaluate(() => { // an override outside of an element that isolates it
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      if (!/[\u202a-\u202e\u2066-\u2069]/.test(walk.currentNode.data)) continue;
      const e = walk.currentNode.parentElement, style = getComputedStyle(e);
      if (style.display.startsWith("inline") && !/isolate|plaintext/.test(style.unicodeBidi)) found.push(e.outerHTML.slice(0, 200));
    }
    return found;
  });
  same(show(bad), "[]", "texts that can turn their neighbours around");
  await is_usable(page);
});

for (const kind of ["", " lines", " code"]) {
  hostile(`a text of 8 MiB${kind && `, ${kind.trim()}`}: the text is complete, and the page stays usable`, async ({ page }) => {
    await send(page, `big${kind}`);
    await is_over(page);
    await until(() => page.evaluate(() => [...document.querySelectorAll("main .md")].reduce((n, e) => n + e.textContent.length, 0) > 7.5e6), "the text");
    await is_usable(page);
    console.log(`# long tasks: ${await page.evaluate(() => window.long.join(" "))} ms`);
  });
}

hostile("100,000 events: all of them are shown, and the page stays usable", async ({ page }) => {
  await send(page, "many 100000");
  await is_over(page);
  await until(() => page.evaluate(() => document.querySelector("main .md")?.textContent.includes("99999 ")), "the last event");
  await is_usable(page);
  console.log(`# long tasks: ${await page.evaluate(() => window.long.join(" "))} ms`);
});

hostile("100,000 events in the inspector: the last one is found, and the page stays usable", async ({ page, server }) => {
  const task = await page.evaluate(async () => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "many 100000" }] };
    const r = await fetch("/agents/hostile/", { method: "POST", headers: { "Content-Type": "application/json", "A2A-Version": "1.0" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }) });
    return (await r.json()).result.task.id;
  });
  await page.goto(`${server.url}/inspect/${task}`);
  await until(() => page.evaluate(() => Number(document.querySelector("main .grid")?.getAttribute("aria-rowcount")) > 100000), "all records");
  await page.focus("main .grid");
  await page.keyboard.press("End");
  await until(() => page.evaluate(() => document.querySelector('main .row[aria-selected="true"]')?.textContent.includes("completed")), "the last record");
  await page.fill("main input[type=search]", '"99998 "');
  await until(() => page.evaluate(() => document.querySelectorAll("main .grid .body .row").length === 1), "the record that the filter finds");
  check((await page.evaluate(() => document.querySelectorAll("main *").length)) < 20000, "elements of the page");
  console.log(`# long tasks: ${await page.evaluate(() => window.long.join(" "))} ms`);
});

hostile("a question with a hostile form is a question", async ({ page }) => {
  await send(page, "ask");
  await page.getByText("<script>window.hacked=1</script>").first().waitFor();
  await pause(300);
});

// Tools that a user has copied from somewhere: the demo agent calls get_weather.
const bad_text = { toString: 1, valueOf: 1 };
const deep_schema = Array.from({ length: 28 }).reduce((s) => ({ type: "object", properties: { x: s }, default: [[[]]] }), {});
const named = (text) => JSON.parse(JSON.stringify({ type: "object", properties: { [text]: { type: "string", title: text, description: text, default: text }, PROTO: { type: "string", default: "own" }, constructor: { type: "number" } }, required: [text] }).replace("PROTO", "__proto__"));
const RETURNS = {
  "names with markup": named(IMITATION),
  "a deep schema": { type: "object", properties: { deep: deep_schema } },
  "a huge enum": { type: "object", properties: { many: { type: "string", enum: Array.from({ length: 2500 }, (_, i) => `v${i}`) }, few: { enum: [IMITATION, bad_text, null, [bad_text]] } } },
  "many fields": { type: "object", properties: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, { type: "string" }])) },
  "members of wrong types": { type: "object", required: 5, properties: { a: { type: "number", title: bad_text, description: bad_text, minimum: bad_text, maximum: [bad_text], default: bad_text },
    b: { type: "string", maxLength: bad_text, format: bad_text, default: bad_text }, c: { type: bad_text, default: bad_text }, d: 5, e: null, f: { enum: "abc" }, g: { type: "string", maxLength: -1 } } },
  "no schema of an object": { type: bad_text, properties: [bad_text], enum: [] },
};
for (const [about, returns] of Object.entries(RETURNS)) {
  tests.push({
    name: `the form of a tool with ${about} is a form, and its result is sent`,
    run: async ({ page, server }) => {
      await open(page, server, "demo");
      await page.click("#tools");
      await page.fill("#tools-text", JSON.stringify([{ name: "get_weather", description: IMITATION, parameters: returns, returns }]));
      await page.click("#tools-save");
      await send(page, "client-tool");
      const form = page.locator("form.tool-result");
      await form.waitFor();
      contains(await page.locator(".tool-description").innerText(), "U+202E");
      same(await page.locator(".tool-card img").count(), 0, "elements of the schema");
      check((await form.locator("*").count()) < 1000, "the form has too many elements");
      const overflow = await page.evaluate(() => document.querySelector("#log").scrollWidth - document.querySelector("#log").clientWidth);
      check(overflow <= 0, `the conversation is ${overflow} pixels wider than its box`);
      await form.locator("button.primary").click();
      await until(() => page.evaluate(() => [...document.querySelectorAll("article.agent")].at(-1).textContent.includes("Your tool ")), "the answer");
      if (about === "names with markup") contains(await page.locator(".user-text").last().innerText(), '"__proto__":"own"');
      await is_unharmed(page);
      await send(page, "echo You said still there?");
      await has_answer(page);
    },
  });
}

tests.push({
  name: "a file of an agent that is opened at its address is downloaded, not shown, whatever its type",
  run: async ({ page, server, context }) => {
    await open(page, server, "hostile");
    const ids = await page.evaluate(async () => {
      const r = await (await fetch("/v1/responses", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model: "hostile", input: "names" }) })).json();
      return [...JSON.stringify(r).matchAll(/\/v1\/files\/([\w-]+)\/content/g)].map((m) => m[1]);
    });
    check(ids.length >= 4, `files of the answer: ${ids}`);
    for (const id of new Set(ids)) {
      const r = await context.request.get(`${server.url}/v1/files/${id}/content`), h = r.headers();
      same(r.status(), 200, id);
      same(`${h["content-disposition"].split(";")[0]} ${h["x-content-type-options"]} ${h["content-security-policy"]}`, "attachment nosniff sandbox; default-src 'none'", "headers");
      check(!/html|script|xml/.test(h["content-type"]), h["content-type"]);
      const tab = await context.newPage();
      const [download] = await Promise.all([tab.waitForEvent("download"), tab.goto(`${server.url}/v1/files/${id}/content`).catch(() => {})]);
      await download.cancel();
      same(tab.url(), "about:blank", "address of the tab");
      await tab.close();
    }
    await is_unharmed(page);
  },
});

process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
await run_tests(tests, { args: ["-c", config] });
