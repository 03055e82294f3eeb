// The page in chromium: what a person sees and can do. TAP.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { createServer, connect } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
const DRAGOMAN = resolve(ROOT, process.env.DRAGOMAN ?? "build/dragoman");
const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const PATIENCE = 60000; // ms; what happens, happens long before

// ---- the server, and a way to it that can be cut ----------------------------------------------------------------

function start(...args) {
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

function end(server) {
  return new Promise((done) => {
    server.child.removeAllListeners("exit");
    server.child.on("exit", (code) => done(code));
    server.child.kill("SIGTERM");
  });
}

// A port whose connections we can cut, as a network does.
function wire_to(url) {
  const port = Number(new URL(url).port), open = new Set();
  const s = createServer((a) => {
    const b = connect(port, "127.0.0.1");
    for (const [x, y] of [[a, b], [b, a]]) {
      open.add(x);
      x.pipe(y);
      x.on("error", () => y.destroy());
      x.on("close", () => { open.delete(x); y.destroy(); });
    }
  });
  return new Promise((done) => s.listen(0, "127.0.0.1", () => done({
    url: `http://127.0.0.1:${s.address().port}`,
    cut: () => { for (const x of open) x.destroy(); },
    close: () => { s.close(); for (const x of open) x.destroy(); },
  })));
}

// ---- tests --------------------------------------------------------------------------------------------------------

const tests = [];
const test = (name, run) => tests.push({ name, run });
const check = (good, why) => { if (!good) throw new Error(why); };
const show = (v) => JSON.stringify(v).slice(0, 500);
const same = (got, want, what) => check(got === want, `${what} is ${show(got)}, wanted ${show(want)}`);
const contains = (text, part) => check(text.includes(part), `no ${JSON.stringify(part)} in ${JSON.stringify(text)}`);

let server, page, errors;

async function open(url = server.url) {
  await page.goto(`${url}/`);
  await page.waitForSelector("#card h2");
}
async function say(words) {
  await page.fill("#words", words);
  await page.press("#words", "Enter");
}
const settled = () => page.waitForSelector("#send:enabled");
const last = (what) => page.locator(".agent").last().locator(what);
const text = (what) => last(what).first().innerText();

test("the page lists the agents and shows the card", async () => {
  await open();
  same(await page.locator("#agents button").count(), 3, "agents");
  same(await page.locator("#card h2").innerText(), "Demo", "name on the card");
  contains(await page.locator("#card").innerText(), "JSONRPC 1.0");
});

test("hello: a Message is the answer", async () => {
  await open();
  await page.click("text=Hello");
  await page.waitForSelector('#agents button[data-agent="hello"][aria-current="true"]');
  await page.waitForSelector("#card h2:has-text('Hello')");
  await say("Ann");
  await settled();
  contains((await text(".answer")).toLowerCase(), "hello");
});

test("an answer streams, whole and once", async () => {
  await open();
  await say("echo so many words");
  await settled();
  const shown = await text(".answer");
  contains(shown, "so many words");
  same(shown.split("so many words").length, 2, "how often it is in the text, plus one");
  same(await last(".activity").isVisible(), false, "the activity line is there at the end");
});

test("status is shown apart from the answer", async () => {
  await open();
  await say("status");
  const seen = new Set();
  while (!(await page.locator("#send:enabled").count())) {
    const line = last(".activity");
    if (await line.isVisible()) seen.add(await line.innerText());
    await page.waitForTimeout(50);
  }
  const steps = [...seen].filter((t) => !["Waiting for the agent", "Working", "Answering", ""].includes(t));
  check(steps.length >= 2, `steps: ${JSON.stringify([...seen])}`);
  const answer = await text(".answer");
  for (const t of steps) check(!answer.includes(t), `${t} is in the answer: ${answer}`);
});

test("a task that works without a message has a generic indicator, which is not part of the answer [R004-06]", async () => {
  await open();
  await say("slow 3");
  // not waitForFunction: the page's Content-Security-Policy has no unsafe-eval
  await page.locator(".activity:visible", { hasText: /Working|Answering/ }).first().waitFor();
  await settled();
  const answer = await text(".answer");
  check(!/Working|Answering/.test(answer), answer);
});

test("cancel ends it, by button", async () => {
  await open();
  await say("slow 600");
  await page.waitForSelector("#cancel:visible");
  await page.waitForSelector(".activity:visible");
  await page.waitForTimeout(300);
  await page.click("#cancel");
  await settled();
  same(await text(".outcome"), "canceled", "outcome");
});

test("cancel ends it, by Escape", async () => {
  await open();
  await say("slow 600");
  await page.waitForSelector("#cancel:visible");
  await page.waitForTimeout(300);
  await page.keyboard.press("Escape");
  await settled();
  same(await text(".outcome"), "canceled", "outcome");
});

test("files are links, pictures are shown, nothing else has a type that a browser runs", async () => {
  await open();
  await page.evaluate(() => {
    const make_url = URL.createObjectURL;
    window.blob_types = [];
    URL.createObjectURL = (blob) => { window.blob_types.push(blob.type); return make_url.call(URL, blob); };
  });
  await say("file");
  await settled();
  const types = await page.evaluate(() => window.blob_types);
  check(types.includes("application/octet-stream"), `types: ${types}`);
  check(types.every((t) => t === "application/octet-stream" || /^image\/(png|jpeg|gif|webp)$/.test(t)), `types: ${types}`);
  const names = await last(".artifact a").allInnerTexts();
  check(names.length >= 2, `links: ${names}`);
  const picture = last(".artifact img").first();
  await picture.waitFor();
  check(await picture.evaluate((i) => i.complete && i.naturalWidth > 0), "the picture is not there");
  const [download] = await Promise.all([page.waitForEvent("download"), last(".artifact a[download]").first().click()]);
  same(download.suggestedFilename(), names[0], "name of the file");
});

test("data is shown as JSON", async () => {
  await open();
  await say("data");
  await settled();
  const value = JSON.parse(await text(".artifact pre"));
  check(typeof value === "object", value);
});

test("input-required: the answer continues the task", async () => {
  await open();
  await say("ask");
  await settled();
  contains(await text(".asks"), "?");
  await say("Ann");
  await settled();
  contains(await text(".answer"), "Ann");
  same(await page.locator(".asks").count(), 1, "questions on the page");
});

test("a conversation is remembered, and a new one starts without it", async () => {
  await open();
  await page.click('#agents button[data-agent="memory"]');
  await page.waitForSelector("#card h2:has-text('Memory')");
  await say("My name is Ann");
  await settled();
  contains(await text(".answer"), "Hello Ann.");
  await say("What is my name?");
  await settled();
  contains(await text(".answer"), "Your name is Ann.");
  await page.reload();
  await page.waitForSelector("#card h2:has-text('Memory')");
  await settled();
  await say("What is my name?");
  await settled();
  contains(await text(".answer"), "Your name is Ann.");
  await page.click("#fresh");
  await page.waitForSelector("#talk:empty");
  await say("What is my name?");
  await settled();
  contains(await text(".answer"), "I do not know your name.");
});

test("auth-required is a question too", async () => {
  await open();
  await say("auth");
  await settled();
  check((await text(".asks")).length > 0, "no question");
});

for (const [script, outcome] of [["fail", "failed"], ["reject", "rejected"]])
  test(`${script}: the reason is shown, and that it ${outcome === "failed" ? "failed" : "was refused"}`, async () => {
    await open();
    await say(script);
    await settled();
    check((await text(".error")).length > 0, "no reason");
    same(await text(".outcome"), outcome, "outcome");
  });

test("a reload finds the conversation again", async () => {
  await open();
  await say("echo remember me");
  await settled();
  await page.reload();
  await page.waitForSelector(".answer");
  contains(await text(".answer"), "remember me");
  same(await page.locator(".user").innerText(), "echo remember me", "the text of the user");
});

test("a reload in the middle of an answer reads it to the end", async () => {
  await open();
  await say("status");
  await page.waitForSelector(".activity:visible");
  await page.waitForTimeout(500);
  await page.reload();
  await page.waitForSelector(".agent");
  await settled();
  await page.waitForSelector(".answer");
  check((await text(".answer")).length > 0, "no answer");
});

test("a connection that drops is taken up where it was", async () => {
  const wire = await wire_to(server.url);
  try {
    let seconds = 3, cut = false;
    while (!cut) { // on a slow machine the answer may be there before we are
      await open(wire.url);
      await page.click("#fresh");
      await say(`slow ${seconds}`);
      await page.waitForSelector(".answer");
      wire.cut();
      cut = (await page.locator("#send:disabled").count()) > 0;
      await settled();
      seconds *= 3;
      check(seconds < 100, "it was always over before the cut");
    }
    contains(server.log, "operation=SubscribeToTask");
    const shown = (await text(".answer")).trimEnd();
    const whole = await page.evaluate(() => sessionStorage.getItem("dragoman")).then(JSON.parse);
    const r = await fetch(`${server.url}/tasks?contextId=${whole.context}&includeArtifacts=true`, { headers: { "A2A-Version": "1.0" } }).then((x) => x.json());
    same(shown, r.tasks[0].artifacts[0].parts.map((p) => p.text).join("").trimEnd(), "answer");
  } finally {
    wire.close();
  }
});

test("everything by keyboard: an example, a message, a new conversation", async () => {
  await open();
  await page.focus("#examples button");
  await page.keyboard.press("Enter");
  await settled();
  same(await page.evaluate(() => document.activeElement.id), "words", "focus after an answer");
  await page.focus("#fresh");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#talk:empty");
});

test("nothing the agent says becomes part of the page", async () => {
  await open();
  await say('echo <img src=x onerror="document.title=1"><b>bold</b>');
  await settled();
  contains(await text(".answer"), "<b>bold</b>");
  same(await page.locator("#talk img, #talk b").count(), 0, "elements");
});

test("an error of the server is shown", async () => {
  await open();
  await page.evaluate(() => sessionStorage.setItem("dragoman", JSON.stringify({ agent: "demo", task: "nobodys" })));
  await page.reload();
  await page.waitForSelector("#card h2");
  await say("hello");
  await settled();
  check((await text(".error")).length > 0, "no error");
});

test("with tokens the page asks for one and works with it", async () => {
  const closed = await start("--store", "memory:", "-c", join(HERE, "tokens.yaml"));
  try {
    await open(closed.url);
    await say("hello");
    await page.waitForSelector("#key:visible");
    await page.fill("#token", "browser-secret");
    await page.click("#key button");
    await page.waitForSelector("#key", { state: "hidden" });
    await say("hello");
    await settled();
    await page.waitForSelector(".answer");
  } finally {
    await end(closed);
  }
});

test("on a narrow screen everything is there too", async () => {
  await page.setViewportSize({ width: 400, height: 760 });
  await open();
  for (const what of ['#agents button[data-agent="hello"]', "#words", "#send"]) {
    const box = await page.locator(what).boundingBox();
    check(box && box.height > 10 && box.x >= 0 && box.x + box.width <= 400, `${what}: ${show(box)}`);
  }
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
});

test("no complaint in the console", async () => same(errors.join("\n"), "", "console"));

// ---- main -------------------------------------------------------------------------------------------------------------

const words = process.argv.slice(2);
const chosen = tests.filter((t) => !words.length || words.some((w) => t.name.includes(w)));
console.log(`1..${chosen.length + 1}`);
if (!CHROMIUM) { console.log("Bail out! there is no chromium: scripts/setup test installs it"); process.exit(1); }
server = await start("--store", "memory:", "-c", join(HERE, "agents.yaml"));
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
errors = [];
let n = 0, failed = 0;
for (const t of chosen) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 760 } });
  context.setDefaultTimeout(PATIENCE);
  page = await context.newPage();
  page.on("pageerror", (e) => errors.push(`${t.name}: ${e.message}`));
  page.on("console", (m) => { if (/Content Security Policy|SyntaxError|TypeError/.test(m.text())) errors.push(`${t.name}: ${m.text()}`); });
  try {
    await t.run();
    console.log(`ok ${++n} - ${t.name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${++n} - ${t.name}\n${String(e.message).split("\n").slice(0, 12).map((l) => `# ${l}`).join("\n")}`);
  }
  if (process.env.SHOTS) {
    mkdirSync(process.env.SHOTS, { recursive: true });
    await page.screenshot({ path: join(process.env.SHOTS, `${t.name.replace(/[^a-z0-9]+/gi, "-")}.png`) }).catch(() => {});
  }
  await context.close();
}
await browser.close();
const status = await end(server);
console.log(`${status === 0 ? "ok" : "not ok"} ${++n} - the server ends well`);
if (status) console.log(server.log.split("\n").slice(-20).map((l) => `# ${l}`).join("\n"));
process.exit(failed || status ? 1 : 0);
