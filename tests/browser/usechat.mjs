// examples/usechat in chromium: the page is built, served from a port of its own, and talks to a live server. TAP.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(dirname(HERE));
const EXAMPLE = join(ROOT, "examples/usechat");
const DRAGOMAN = resolve(ROOT, process.env.DRAGOMAN ?? "build/dragoman");
const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const PATIENCE = 60_000; // ms; what happens, happens long before
const folder = mkdtempSync(join(tmpdir(), "dragoman-usechat-"));

/** A program that prints its address. */
function start(program, args, pattern) {
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ASAN_OPTIONS: "exitcode=77:detect_leaks=1" } });
  const it = { child, log: "" };
  it.ended = new Promise((done) => child.on("exit", (code) => done(code)));
  return new Promise((done, fail) => {
    const read = (bytes) => {
      it.log += bytes;
      const found = pattern.exec(it.log);
      if (found) done(Object.assign(it, { url: found[1] }));
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    it.ended.then((code) => fail(new Error(`${program} ended with ${code}: ${it.log}`)));
  });
}

// ---- tests --------------------------------------------------------------------------------------------------------

const tests = [];
const test = (name, run) => tests.push({ name, run });
const check = (good, why) => { if (!good) throw new Error(why); };
const same = (got, want, what) => check(JSON.stringify(got) === JSON.stringify(want), `${what} is ${JSON.stringify(got)}, wanted ${JSON.stringify(want)}`);

let server, files, page, chats = 0;

async function open(agent = "demo") {
  await page.goto(`${files.url}?server=${encodeURIComponent(`${server.url}/agents/${agent}`)}#chat-${++chats}`);
  await ready();
}
const ready = () => page.waitForSelector('main[data-status="ready"]');
const busy = () => page.waitForSelector('main[data-status="streaming"]');
async function say(words) {
  const before = await page.locator("article.assistant").count();
  await page.fill("#words", words);
  await page.press("#words", "Enter");
  await page.waitForFunction((n) => document.querySelectorAll("article.assistant").length > n, before);
}
const last = (what) => page.locator("article.assistant").last().locator(what);
const tasks = (agent = "demo") =>
  fetch(`${server.url}/agents/${agent}/tasks?contextId=chat-${chats}`, { headers: { "A2A-Version": "1.0" } }).then((r) => r.json()).then((r) => r.tasks);
const whole = (task) => task.status.message.parts.map((p) => p.text).join("");

test("useChat: an answer streams, whole and once", async () => {
  await open();
  await say("stream");
  await ready();
  same(await last(".answer").allInnerTexts(), [whole((await tasks())[0])], "the answer");
});

test("useChat: a second message is answered behind the first", async () => {
  await open();
  for (const words of ["echo one", "echo two"]) {
    await say(words);
    await ready();
  }
  same(await page.locator("article.user").allInnerTexts(), ["echo one", "echo two"], "the texts of the user");
  const answers = await page.locator("article.assistant .answer").allInnerTexts();
  check(answers.length === 2 && answers[0].includes("echo one") && answers[1].includes("echo two"), `answers: ${answers}`);
});

test("useChat: status is shown, and never inside the answer", async () => {
  await open("steady"); // seconds between them: also a slow browser shows more than one
  await page.evaluate(() => {
    window.seen = new Set();
    const look = () => { for (const e of document.querySelectorAll(".status")) window.seen.add(e.textContent); };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await say("status");
  await ready();
  const seen = await page.evaluate(() => [...window.seen]);
  check(seen.length >= 2, `what was seen: ${seen}`);
  const [answer, ...more] = await last(".answer").allInnerTexts();
  same(more, [], "more answers");
  for (const t of seen) check(!answer.includes(t), `${t} is in ${answer}`);
  same(await last(".status").count(), 0, "status lines at the end");
});

test("useChat: stop cancels the agent's work", async () => {
  await open("slow");
  await say("slow 600");
  await busy();
  await page.waitForSelector("article.assistant .answer");
  await page.click("#stop");
  await ready();
  same(await page.locator("article.assistant").last().getAttribute("data-outcome"), "canceled", "the outcome");
  same((await tasks("slow")).map((t) => t.status.state), ["TASK_STATE_CANCELED"], "the task");
});

test("useChat: stop cancels, also before the answer has begun", async () => {
  await open("slow");
  await page.fill("#words", "slow 600");
  await page.press("#words", "Enter");
  await page.click("#stop");
  await ready();
  same((await tasks("slow")).map((t) => t.status.state), ["TASK_STATE_CANCELED"], "the task");
});

test("useChat: a reload finds the chat again", async () => {
  await open();
  await say("echo remember me");
  await ready();
  const before = await page.locator("article").allInnerTexts();
  await page.reload();
  await page.waitForSelector("article.assistant .answer");
  await ready();
  same(await page.locator("article").allInnerTexts(), before, "the chat");
});

test("useChat: a message that is sent before the stored messages have arrived stays", async () => {
  let release;
  const sent = new Promise((done) => (release = done));
  const stored = /\/ai-sdk\/[^/]+\/messages$/;
  await page.route(stored, async (route) => {
    const answer = await route.fetch(); // as they are before the message
    await sent;
    await route.fulfill({ response: answer });
  });
  const arrived = page.waitForResponse(stored);
  await open();
  await page.fill("#words", "echo early");
  await page.press("#words", "Enter");
  await page.waitForSelector("article.user");
  release();
  await arrived;
  await page.unroute(stored);
  await page.waitForSelector("article.assistant .answer");
  await ready();
  same(await page.locator("article.user").allInnerTexts(), ["echo early"], "the texts of the user");
  same(await page.locator("article.assistant").count(), 1, "messages of the assistant");
});

test("useChat: a reload in the middle of an answer goes on with it, once", async () => {
  await open("gate");
  const gate = join(folder, `gate-${chats}`);
  await say(gate);
  await page.waitForSelector("article.assistant .answer:has-text('one')");
  await page.reload();
  await page.waitForSelector("article.assistant .answer:has-text('one')");
  await busy();
  writeFileSync(gate, "");
  await ready();
  same(await page.locator("article.assistant").count(), 1, "messages of the assistant");
  same((await last(".answer").allInnerTexts()).map((t) => t.trim().split(/\s+/)), [["one", "two", "three"]], "the answer");
  same((await tasks("gate")).length, 1, "tasks");
});

test("useChat: a tool that the agent runs is a part of the message", async () => {
  await open();
  await say("tools");
  await ready();
  same(await last(".tool b").allInnerTexts(), ["get_weather"], "tools");
  check((await last(".tool output").innerText()).includes("Sunny"), "its result");
  same(await last(".answer").count(), 1, "answers");
});

test("useChat: a tool of the page is run there, and the answer goes on, also after a reload", async () => {
  await open();
  await say("client-tool");
  await page.waitForSelector("article.assistant .answer:has-text('Foggy')");
  await ready();
  same(await page.locator("article.assistant").count(), 1, "messages of the assistant");
  same(await last(".tool").count(), 1, "tools");
  same(await last(".answer").allInnerTexts(), ["Your tool says: Foggy in Oakland, 57°F"], "the answer");
  await page.reload();
  await page.waitForSelector("article.assistant .answer:has-text('Foggy')");
  same(await last(".tool").count(), 1, "tools after a reload");
});

test("useChat: a question, and its answer", async () => {
  await open();
  await say("ask");
  await ready();
  check((await last(".answer").innerText()).includes("?"), "the question");
  await say("Ann");
  await ready();
  check((await last(".answer").innerText()).includes("Ann"), "the answer");
  same((await tasks()).length, 1, "tasks");
});

test("useChat: files and errors are shown", async () => {
  await open();
  await say("file");
  await ready();
  same(await last("img.file").count(), 1, "pictures");
  same(await last("a.file").count(), 2, "links");
  await page.reload();
  await page.waitForSelector("article.assistant .answer");
  await ready();
  same(await last(".file").count(), 3, "files after a reload");
  await say("fail");
  await page.waitForSelector("#error");
  check((await page.locator("#error").innerText()).length > 5, "the error");
});

// ---- main ---------------------------------------------------------------------------------------------------------

const words = process.argv.slice(2);
const chosen = tests.filter((t) => !words.length || words.some((w) => t.name.includes(w)));
console.log(`1..${chosen.length + 1}`);
if (!CHROMIUM) { console.log("Bail out! there is no chromium: scripts/setup test installs it"); process.exit(1); }
execFileSync("npm", ["run", "--silent", "build"], { cwd: EXAMPLE, stdio: ["ignore", "ignore", "pipe"] });
writeFileSync(join(folder, "agents.json"), JSON.stringify({ agents: [
  { id: "demo", type: "demo", default: true, settings: { pace: 0.2 } },
  { id: "slow", type: "demo" },
  { id: "steady", type: "demo" },
  { id: "gate", type: "exec", settings: { command: [join(ROOT, "tests/interop/server/gate.sh")], input: "text", output: "text" } },
] }));
server = await start(DRAGOMAN, ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "-c", join(folder, "agents.json")], /listening on (http:\S+)/);
files = await start(process.execPath, [join(EXAMPLE, "serve.mjs"), "0"], /open (http:\S+)/);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
let n = 0, failed = 0;
for (const t of chosen) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE);
  page = await context.newPage();
  const errors = [];
  page.on("pageerror", (e) => errors.push(e.message));
  try {
    await t.run();
    same(errors, [], "errors of the page");
    console.log(`ok ${++n} - ${t.name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${++n} - ${t.name}\n${String(e.message).split("\n").slice(0, 12).map((l) => `# ${l}`).join("\n")}\n# ${errors}`);
  }
  await context.close();
}
await browser.close();
files.child.kill("SIGTERM");
server.child.kill("SIGTERM");
const status = await server.ended;
console.log(`${status === 0 ? "ok" : "not ok"} ${++n} - useChat: the server ends well`);
if (status) console.log(server.log.split("\n").slice(-20).map((l) => `# ${l}`).join("\n"));
rmSync(folder, { recursive: true, force: true });
process.exit(failed || status ? 1 : 0);
