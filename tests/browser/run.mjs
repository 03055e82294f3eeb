// The page in chromium: what a person sees and can do. TAP.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
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

// ---- an AG-UI agent of another project, with a server in front of it --------------------------------------------------

const SERVICES = resolve(ROOT, "tests/interop/services");
const pause = (ms) => new Promise((r) => setTimeout(r, ms));

const free_port = () => new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});
const listens = (port) => new Promise((done) => {
  const s = connect(port, "127.0.0.1", () => { s.destroy(); done(true); });
  s.on("error", () => done(false));
});

// The agent of tests/interop/services, whose tools change a list of items that is its state.
async function start_board() {
  const port = await free_port(), folder = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
  const child = spawn(join(SERVICES, ".venv-services/bin/python"), [join(SERVICES, "pydantic_agent_service.py"), String(port)], { stdio: ["ignore", "ignore", "inherit"] });
  let ended = "";
  child.on("error", (e) => (ended = e.message));
  child.on("exit", (code) => (ended ||= `exit status ${code}`));
  for (const end = Date.now() + PATIENCE; !(await listens(port)); await pause(100))
    check(!ended && Date.now() < end, `the service does not listen (scripts/setup test installs it): ${ended}`);
  const file = join(folder, "dragoman.yaml");
  writeFileSync(file, JSON.stringify({ agents: [{ id: "board", type: "http", default: true, card: { name: "Board" }, settings: { url: `http://127.0.0.1:${port}/ag-ui`, format: "ag-ui" } }] }));
  const front = await start("--store", "memory:", "-c", file);
  return { url: front.url, end: async () => {
    const status = await end(front);
    child.kill("SIGTERM");
    rmSync(folder, { recursive: true });
    check(status === 0, `the server ended with ${status}: ${front.log}`);
  } };
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
  same(await page.locator("#agents button").count(), 4, "agents");
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

// Of each call of the last answer: its title and its texts. A person opens it for them.
async function calls() {
  const found = [];
  for (const one of await last(".tool").all()) {
    if (!(await one.locator("pre").first().isVisible())) await one.locator("summary").press("Enter");
    found.push([await one.locator("summary").innerText(), ...await one.locator("pre:visible").allInnerTexts()]);
  }
  return found;
}
const shared_state = async () => JSON.parse(await page.locator("#state pre:visible").innerText());
const same_json = (got, want, what) => same(JSON.stringify(got), JSON.stringify(want), what);

test("the agent's own tools are shown above the answer", async () => {
  await open();
  await say("parallel-tools");
  await page.waitForSelector(".tool");
  await settled();
  const shown = await calls();
  same(shown.length, 2, "calls");
  for (const [title, args, result] of shown) {
    check(/^Tool \w+: done$/.test(title), title);
    check(Object.keys(JSON.parse(args)).length > 0, args);
    check(result.length > 0, "no result");
  }
  same(await page.locator(".agent > :first-child").getAttribute("class"), "tools", "class of the first element");
  check((await text(".answer")).length > 0, "no answer");
});

test("shared state is shown, and its changes; a new conversation has none", async () => {
  await open();
  same(await page.locator("#state").isVisible(), false, "the state is there at the start");
  await say("state");
  await settled();
  same_json(await shared_state(), { recipe: "pancakes", servings: 4, steps: ["mix", "bake"] }, "state");
  await say("echo no change");
  await settled();
  same((await shared_state()).servings, 4, "servings after a turn without a change");
  await page.reload();
  await page.waitForSelector("#state:visible");
  same((await shared_state()).servings, 4, "servings after a reload");
  await page.click("#fresh");
  await page.waitForSelector("#talk:empty");
  same(await page.locator("#state").isVisible(), false, "the state is there in a new conversation");
});

test("every operation of a JSON Patch changes the state", async () => {
  await open();
  const results = await page.evaluate(async () => {
    const { patched } = await import("/web/agui.js");
    const before = { a: [1, 2], "x/y~": { b: 1 } };
    const apply = (...patch) => patched(before, patch);
    return [
      apply({ op: "add", path: "/a/0", value: 0 }).a, apply({ op: "add", path: "/a/-", value: 3 }).a,
      apply({ op: "replace", path: "/a/1", value: 9 }).a, apply({ op: "remove", path: "/a/0" }).a,
      apply({ op: "copy", from: "/a/0", path: "/a/-" }).a, apply({ op: "move", from: "/a/0", path: "/c" }),
      apply({ op: "replace", path: "/x~1y~0/b", value: 2 })["x/y~"], apply({ op: "test", path: "/a/0", value: 1 }),
      apply({ op: "replace", path: "", value: 5 }), apply({ op: "add", path: "/no/where", value: 1 }),
      apply({ op: "add", path: "/__proto__/polluted", value: 1 }), {}.polluted ?? "clean", before,
    ];
  });
  same_json(results, [[0, 1, 2], [1, 2, 3], [1, 9], [2], [1, 2, 1], { a: [2], "x/y~": { b: 1 }, c: 1 }, { b: 2 },
    { a: [1, 2], "x/y~": { b: 1 } }, 5, null, null, "clean", { a: [1, 2], "x/y~": { b: 1 } }], "results");
});

test("an AG-UI agent of pydantic-ai: text, a failure, tools and state, before and after a reload", async () => {
  const board = await start_board();
  try {
    await open(board.url);
    same(await page.locator("#card h2").innerText(), "Board", "name on the card");
    await say("hello");
    await settled();
    same(await text(".answer"), "You said hello in turn 1", "answer");
    same(await page.locator(".answer").count(), 1, "answers on the page");
    same(await page.locator(".tool").count(), 0, "calls on the page");
    same(await page.locator("#state").isVisible(), false, "the state is there");

    const steps = [
      ["add milk", "add_item", "milk", "1 items", ["milk"]],
      ["add bread", "add_item", "bread", "2 items", ["milk", "bread"]], // a snapshot; the agent got the state before
      ["replace tea", "replace_item", "tea", "tea is the last item", ["milk", "tea"]], // a delta
    ];
    for (const [words, tool, item, result, items] of steps) {
      await say(words);
      await settled();
      same(await text(".answer"), `The tool ${tool} says: ${result}`, "answer");
      same(await last(".answer").count(), 1, "answers in the turn");
      same_json(await calls(), [[`Tool ${tool}: done`, JSON.stringify({ item }, null, 2), result]], `calls after ${words}`);
      same_json(await shared_state(), { items }, `state after ${words}`);
    }

    await page.reload();
    await page.locator(".tool").nth(2).waitFor();
    same_json(await calls(), [["Tool replace_item: done", JSON.stringify({ item: "tea" }, null, 2), "tea is the last item"]], "calls after a reload");
    same(await page.locator(".tool").count(), 3, "calls on the page after a reload");
    same(await page.locator(".answer").count(), 4, "answers on the page after a reload");
    await page.waitForSelector("#state pre:visible:has-text('tea')");
    same_json(await shared_state(), { items: ["milk", "tea"] }, "state after a reload");

    await say("fail");
    await settled();
    contains(await text(".error"), "out of order");
    same_json(await shared_state(), { items: ["milk", "tea"] }, "state after a failure");
  } finally {
    await board.end();
  }
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

async function open_asks(words) {
  await open();
  await page.click('#agents button[data-agent="asks"]');
  await page.waitForSelector("#card h2:has-text('Asks')");
  await say(words);
  await page.waitForSelector(".agent .asks");
}
async function answered(want) {
  await last(`.answer:has-text(${JSON.stringify(want)})`).waitFor({ timeout: PATIENCE });
  same(await text(".answer"), want, "the answer");
}

test("calls are approved and rejected with buttons", async () => {
  await open_asks("delete a b");
  same(await last(".request").count(), 2, "requests");
  contains(await last(".request").first().innerText(), '"path": "a"');
  await last(".request").nth(0).locator(".approve").click();
  same(await last(".request").nth(0).locator("button:enabled").count(), 0, "buttons of the one that is decided");
  await last(".request").nth(1).locator(".reject").click();
  await answered("deleted a; kept b");
  contains(await page.locator(".user").last().innerText(), "Approved, Rejected");
});

test("a request for approval has its buttons after a reload, and a typed answer closes them", async () => {
  await open_asks("delete old.txt");
  await settled();
  await page.reload();
  await page.waitForSelector(".request .approve:enabled");
  await say("no");
  await answered("kept old.txt");
  same(await page.locator(".request button:enabled").count(), 0, "open buttons");
});

test("choices are buttons, and an address to sign in is a link", async () => {
  await open_asks("choose");
  await last(".choice").nth(1).click();
  await answered("You answered: blue");
  await say("sign in");
  await page.waitForSelector(".controls a");
  same(await last(".controls a").getAttribute("href"), "https://login.example/start", "address");
  await last(".done").click();
  await answered("You answered: done");
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
