// The inspector, the comparison and the operators' view in chromium. TAP.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HERE, check, contains, end, run_tests, same, same_json, start, until } from "./lib/harness.mjs";

const FORMATS = ["a2a-1.0", "a2a-0.3", "ag-ui", "openai-chat", "openai-responses", "ai-sdk"];
const tests = [];
const test = (name, run, more = {}) => tests.push({ name, run, ...more });

// ---- turns ----------------------------------------------------------------------------------------------------------

let made = 0;
const id = (what) => `${what}-${process.pid}-${++made}`;

const REQUESTS = {
  "a2a-1.0": (text) => ["/", { jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message: { messageId: id("m"), role: "ROLE_USER", parts: [{ text }] } } }, { "A2A-Version": "1.0" }],
  "a2a-0.3": (text) => ["/", { jsonrpc: "2.0", id: 1, method: "message/stream", params: { message: { kind: "message", messageId: id("m"), role: "user", parts: [{ kind: "text", text }] } } }, { "A2A-Version": "0.3" }],
  "ag-ui": (text) => ["/ag-ui", { threadId: id("thread"), runId: id("run"), protocolVersion: "1.0", state: {}, messages: [{ id: id("m"), role: "user", content: text }], tools: [], context: [], forwardedProps: {} }],
  "openai-chat": (text) => ["/v1/chat/completions", { model: "demo", stream: true, messages: [{ role: "user", content: text }] }],
  "openai-responses": (text) => ["/v1/responses", { model: "demo", stream: true, input: text }],
  "ai-sdk": (text) => ["/ai-sdk", { id: id("chat"), messages: [{ id: id("m"), role: "user", parts: [{ type: "text", text }] }], trigger: "submit-message" }],
};

// Sends a message and returns the bytes of the answer, without keep-alives, and the id of its task.
async function turn(server, format, text, base = "") {
  const [path, body, headers = {}] = REQUESTS[format](text);
  const r = await fetch(`${server.url}${base}${path}`, { method: "POST", headers: { "Content-Type": "application/json", Accept: "text/event-stream", ...headers }, body: JSON.stringify(body) });
  const bytes = (await r.text()).replace(/^: ping\n\n/gm, "");
  check(r.ok, `${format}: ${r.status} ${bytes}`);
  const list = await (await fetch(`${server.url}${base}/tasks?pageSize=1`, { headers: { "A2A-Version": "1.0" } })).json();
  return { bytes, task: list.tasks[0].id };
}

const json = async (url, options) => (await fetch(url, options)).json();
const lines = async (url) => (await (await fetch(url)).text()).trim().split("\n").map((l) => JSON.parse(l));

// ---- the page -------------------------------------------------------------------------------------------------------

const grid = (page) => page.locator(".grid");
const row = (page, seq) => page.locator(`.grid .body .row[id$="-${seq}"]`);

async function open(page, server, task, query = "") {
  await page.goto(`${server.url}/inspect/${task}${query}`);
  await row(page, 1).waitFor();
  await page.locator(".facts .state").first().waitFor();
}
const step_to = async (page, key, n = 1) => { await grid(page).focus(); for (let i = 0; i < n; i++) await page.keyboard.press(key); };
const selected = (page) => page.locator('.grid .row[aria-selected="true"] .seq').innerText();

async function download(page, format) {
  await page.locator("summary", { hasText: "Download" }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`.menu-list button[data-format="${format}"]:has-text("(")`).click()]);
  await page.locator("summary", { hasText: "Download" }).click();
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

// ---- tests ------------------------------------------------------------------------------------------------------------

for (const format of FORMATS)
  test(`${format}: its column is what the endpoint sent, byte for byte`, async ({ page, server }) => {
    const { bytes, task } = await turn(server, format, "tools");
    await open(page, server, task);
    const file = await download(page, format);
    same(file.name, `${task}.${format}.sse`, "name of the file");
    same(file.text, bytes, `the column ${format}`);
    contains(await page.locator(`.row.head [data-format="${format}"]`).innerText(), "as sent");
  });

test("every column: each record has the frames and the losses that the server reports, in its row", async ({ page, server }) => {
  const { task } = await turn(server, "ag-ui", "tools");
  const columns = {};
  for (const format of FORMATS) columns[format] = await lines(`${server.url}/debug/tasks/${task}/columns/${format}?turn=1`);
  await page.setViewportSize({ width: 2200, height: 900 });
  await open(page, server, task);
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByLabel("Short ids").uncheck();
  const n = columns["ag-ui"].filter((l) => l.seq).length;
  let losses = 0, texts = 0;
  for (let seq = 1; seq <= n; seq++) {
    await step_to(page, seq === 1 ? "Home" : "ArrowDown");
    await until(async () => (await selected(page)) === String(seq), `record ${seq} is selected`);
    for (const format of FORMATS) {
      const want = columns[format].find((l) => l.seq === seq), cell = row(page, seq).locator(`[data-format="${format}"]`);
      await until(async () => (await cell.innerText()) !== "\u2026", `${format} is loaded`);
      const got = (await cell.locator(".frames").count()) ? await cell.locator(".frames").evaluate((e) => e.textContent) : "";
      const start = got.split(" \u22ef ")[0];
      check(want.frames.startsWith(start) && Boolean(start) === Boolean(want.frames), `${format}, record ${seq}: ${start} instead of ${want.frames}`);
      texts += start ? 1 : 0;
      const whole = want.losses.filter((l) => !l.what.includes(" /")); // losses of whole events come before those of members
      for (const loss of [...whole, ...want.losses].slice(0, 1)) {
        contains(await cell.locator(".loss").innerText(), loss.what);
        contains(await cell.locator(".loss").getAttribute("title"), loss.why);
        losses++;
      }
    }
  }
  check(texts > 20 && losses > 5, `${texts} texts and ${losses} losses were compared`);
});

test("on the wire: the frames of the selected record in full, with every loss and its reason", async ({ page, server }) => {
  const { task } = await turn(server, "openai-responses", "tools");
  await open(page, server, task, "?seq=5");
  await page.locator(".detail summary", { hasText: "On the wire" }).click();
  for (const format of ["openai-responses", "openai-chat"]) {
    const want = (await lines(`${server.url}/debug/tasks/${task}/columns/${format}?turn=1`)).find((l) => l.seq === 5);
    const part = page.locator(".wire .body > div").nth(FORMATS.indexOf(format));
    await until(async () => (await part.textContent()).includes(want.frames.slice(0, 20) || want.losses[0].why), `${format} is shown`);
    if (want.frames) same(await part.locator("pre").evaluate((e) => e.textContent), want.frames, `frames of ${format}`);
    for (const loss of want.losses) contains(await part.innerText(), loss.why);
  }
});

test("records have seq, time and gap, and a filter finds them", async ({ page, server }) => {
  const { task } = await turn(server, "a2a-1.0", "tools");
  await open(page, server, task);
  const records = await lines(`${server.url}/debug/tasks/${task}/records`);
  await until(async () => (await page.locator(".facts").innerText()).includes(`${records.length} records`), `${records.length} records`);
  const five = records.findIndex((r) => r.record.kind === "internal:tool-complete");
  const gap = Date.parse(records[five].time) - Date.parse(records[five - 1].time);
  contains(await row(page, records[five].seq).innerText(), `+${gap} ms`);
  check(/\d\d:\d\d:\d\d\.\d{3}/.test(await row(page, 1).innerText()), "no time");
  await page.keyboard.press("/");
  same(await page.evaluate(() => document.activeElement.type), "search", "focus after /");
  await page.keyboard.type("Oakland");
  const want = records.filter((r) => JSON.stringify(r).includes("Oakland")).length;
  await until(async () => (await page.locator(".grid .body .row").count()) === want, `${want} rows`);
  await page.fill(".inspector input[type=search]", "");
  await page.locator('.kinds button[data-kind="tool"]').click();
  await until(async () => (await page.locator(".grid .body .row").count()) === 2, "the call and its result");
});

test("rows of every kind are aligned, kinds are in one order, and the bars of the timeline select their record", async ({ page, server }) => {
  const kinds = ["Text", "Tools", "Reasoning", "Status", "Sub-agents", "State", "Files", "Messages", "Task", "Other"];
  for (const text of ["state", "subagent", "reasoning", "tools", "file"]) {
    const { task } = await turn(server, "ag-ui", text);
    await page.setViewportSize({ width: 1280, height: 2000 });
    await open(page, server, task);
    await until(async () => (await page.locator(".gantt .bar").count()) > 0, "the timeline");
    await until(() => page.evaluate(() => document.querySelectorAll(".grid .body .row:not(.end)").length > 5), "the rows"); // all are drawn at this height
    const cells = await page.evaluate(() => [...new Set([...document.querySelectorAll(".grid .body .row .cell.first")].map((e) => `${e.getBoundingClientRect().x} ${e.getBoundingClientRect().width} ${getComputedStyle(e).fontWeight}`))]);
    same(cells.length, 1, `places of the first cells, ${text}: ${cells}`);
    same(await page.evaluate(() => [...document.querySelectorAll(".grid .body .row")].some((e) => getComputedStyle(e).borderRadius !== "0px" || getComputedStyle(e).paddingLeft !== "0px")), false, "rows with a shape of their own");
    const names = await page.locator(".kinds button").allInnerTexts(), places = names.map((n) => kinds.indexOf(n.trim()));
    same_json(places, [...places].sort((a, b) => a - b), `places of ${names}`);
    const seq = await page.evaluate(() => { // at once: a later record draws the bars again
      const bar = [...document.querySelectorAll(".gantt .bar")].at(-1);
      bar.click();
      return bar.title.match(/record (\d+)/)[1];
    });
    await until(async () => (await selected(page)) === seq, `record ${seq} is selected`);
  }
});

test("stepping moves the folded Task, and shows what changed", async ({ page, server }) => {
  const { task } = await turn(server, "a2a-1.0", "tools");
  await open(page, server, task);
  const records = await lines(`${server.url}/debug/tasks/${task}/records`);
  for (let seq = 1; seq <= records.length; seq++) {
    await step_to(page, seq === 1 ? "Home" : "ArrowDown");
    contains(await page.locator(".task summary").first().innerText(), `Task after record ${seq}`);
    const want = await json(`${server.url}/debug/tasks/${task}/fold?seq=${seq}`);
    const shown = page.locator(".task .tree");
    await until(async () => (await page.locator(".task .body[aria-busy]").count()) === 0 && (await shown.textContent()).includes(want.status.state), `the state after ${seq}`);
    const text = (want.artifacts ?? []).map((a) => a.parts.map((p) => p.text ?? "").join("")).join("");
    if (text) await until(async () => (await page.locator(".task .body").textContent()).includes(text) || (await page.locator(".task .hint").count()) > 0, `the text after ${seq}`);
  }
  check((await page.locator(".task .changed").count()) > 0, "no change is marked");
  await step_to(page, "Home");
  await until(async () => (await selected(page)) === "1", "the first record after Home");
});

test("a finding is at its record, with the fix; n and p go from one to the next [R004-14]", async ({ page, server }) => {
  await page.goto(`${server.url}/inspect`);
  const stream = readFileSync(join(HERE, "../vectors/doc-004/faulty-stream/in.a2a-0.3.jsonl"), "utf8");
  await drop(page, "faulty.jsonl", stream);
  await row(page, 1).waitFor();
  const { findings } = await json(`${server.url}/debug/streams/findings?format=auto`, { method: "POST", body: stream });
  const one = findings.find((f) => f.rule === "working-status-text");
  check(one?.fix, `no finding: ${JSON.stringify(findings)}`);
  const band = row(page, one.seq).locator(".band", { hasText: "working-status-text" });
  await band.waitFor();
  contains(await band.innerText(), one.fix.slice(0, 40));
  await page.locator(".alerts button", { hasText: "working-status-text" }).click();
  await until(async () => (await selected(page)) === String(one.seq), "the record of the finding");
  const shown = await page.locator(".detail .finding", { hasText: "working-status-text" }).innerText();
  for (const part of [one.fix, one.at]) contains(shown, part);
  const seqs = [...new Set(findings.map((f) => f.seq))].sort((a, b) => a - b);
  for (const [key, to] of [["Home", 1], ["n", seqs.find((n) => n > 1) ?? seqs[0]], ["p", seqs.findLast((n) => n < (seqs.find((x) => x > 1) ?? seqs[0])) ?? seqs.at(-1)]]) {
    await step_to(page, key);
    await until(async () => (await selected(page)) === String(to), `record ${to} after ${key}`);
  }
});

// Drops a file onto the page.
async function drop(page, name, text) {
  await page.locator(".inspect").waitFor();
  const data = await page.evaluateHandle(({ name: n, text: t }) => { const d = new DataTransfer(); d.items.add(new File([t], n)); return d; }, { name, text });
  await page.dispatchEvent(".inspect", "dragenter", { dataTransfer: data });
  await page.dispatchEvent(".inspect", "drop", { dataTransfer: data });
}

for (const format of FORMATS)
  test(`a recorded stream of ${format} is dropped and looked at in the same way`, async ({ page, server }) => {
    const { bytes } = await turn(server, format, "tools");
    await page.goto(`${server.url}/inspect`);
    await drop(page, `recorded.${format}.sse`, bytes);
    await row(page, 1).waitFor();
    contains(await page.locator(".facts").innerText(), "recorded");
    const { records } = await json(`${server.url}/debug/streams?format=auto`, { method: "POST", body: bytes });
    await until(async () => (await page.locator(".facts").innerText()).includes(`${records.length} record`), `${records.length} records`);
    for (const other of ["a2a-1.0", "ai-sdk"]) {
      const want = (await (await fetch(`${server.url}/debug/streams/columns/${other}?format=auto`, { method: "POST", body: bytes })).text()).trim().split("\n").map((l) => JSON.parse(l).frames ?? "").join("");
      same((await download(page, other)).text, want, other);
    }
    await until(async () => (await page.locator(".task .tree").count()) > 0, "the Task is folded");
    await step_to(page, "End");
    await until(async () => (await page.locator(".task .body").textContent()).includes("sunny in Oakland"), "the Task at the end has the answer");
  });

test("curl lines run in a shell, and answer", async ({ page, server, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const { task } = await turn(server, "a2a-1.0", "echo it's \"quoted\" $HOME `x`");
  await open(page, server, task);
  for (const format of FORMATS) {
    await page.locator("summary", { hasText: "Copy as curl" }).click();
    await page.locator(`.menu-list button[data-format="${format}"]:not(:has-text("("))`).click();
    const line = await until(async () => { const t = await page.evaluate(() => navigator.clipboard.readText()); return t.startsWith("curl") && t; }, "the line is in the clipboard");
    const answer = execFileSync("sh", ["-c", line], { encoding: "utf8", timeout: 60000 });
    contains(answer, "data: ");
    contains(answer.replaceAll("\\\"", '"'), "quoted");
    check(answer.includes("$HOME"), `${format}: the shell has changed the text: ${answer}`);
    await page.evaluate(() => navigator.clipboard.writeText(""));
  }
});

test("records are downloaded as .jsonl", async ({ page, server }) => {
  const { task } = await turn(server, "a2a-1.0", "tools");
  await open(page, server, task);
  const file = await download(page, "records");
  same(file.name, `${task}.jsonl`, "name");
  same(file.text, await (await fetch(`${server.url}/debug/tasks/${task}/records`)).text(), "records");
});

test("a task that runs is followed: records and columns appear as they come", async ({ page, server }) => {
  const r = await json(`${server.url}/message:send`, { method: "POST", headers: { "A2A-Version": "1.0", "Content-Type": "application/json" },
    body: JSON.stringify({ message: { messageId: id("m"), role: "ROLE_USER", parts: [{ text: "status" }] }, configuration: { returnImmediately: true } }) });
  await open(page, server, r.task.id);
  const before = await page.locator(".grid").getAttribute("aria-rowcount");
  await page.locator(".facts .state.completed").waitFor();
  const after = await page.locator(".grid").getAttribute("aria-rowcount");
  check(Number(after) > Number(before), `${before} rows at first, ${after} at the end`);
  const file = await download(page, "ag-ui");
  const want = (await lines(`${server.url}/debug/tasks/${r.task.id}/columns/ag-ui?turn=1`)).map((l) => l.frames).join("");
  same(file.text, want, "the column after the end");
});

test("hostile records are text: no element, no link, control and bidirectional characters by their code", async ({ page, server }) => {
  const evil = '<img src=x onerror="document.title=1"><script>alert(1)</script> javascript:alert(1) \u202Eabc\u202C \u0007 \u200b';
  const update = (state, text) => ({ statusUpdate: { taskId: "t", contextId: "c", status: { state, message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }, { data: { [evil]: evil } }] } } } });
  const stream = [{ task: { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } }, update("TASK_STATE_WORKING", evil), { artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId: "a", name: evil, parts: [{ text: evil }] }, lastChunk: true } }, update("TASK_STATE_COMPLETED", evil)].map((e) => JSON.stringify(e)).join("\n");
  await page.goto(`${server.url}/inspect`);
  await drop(page, `${evil.replaceAll("/", "")}.jsonl`, stream);
  await row(page, 2).waitFor();
  await row(page, 2).click();
  await page.locator(".detail summary", { hasText: "On the wire" }).click();
  await page.locator(".detail .odd").first().waitFor();
  same(await page.locator("#view img, #view script, #view iframe, #view a[href^='javascript']").count(), 0, "elements of the agent");
  const shown = await page.locator("#view").innerText();
  contains(shown, "U+202E");
  contains(shown, "<script>");
  check(!/[\u202a-\u202e\u0007\u200b]/.test(shown), "a raw character is on the page");
  check((await page.title()) !== "1", "the agent changed the title");
});

test("a record of 8 MiB is shown in parts, and the page stays usable", async ({ page, server }) => {
  const stream = [{ task: { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } } }, { artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId: "a", parts: [{ text: "long ".repeat((7 << 20) / 5) }] }, lastChunk: true } }, { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } }].map((e) => JSON.stringify(e)).join("\n");
  await page.goto(`${server.url}/inspect`);
  await drop(page, "large.jsonl", stream);
  await row(page, 2).click();
  const more = page.locator(".record .more");
  await more.waitFor();
  const before = (await page.locator(".record .body").textContent()).length;
  check(before < 10000, `${before} characters at first`);
  await more.click();
  check((await page.locator(".record .body").textContent()).length > before + 60000, "nothing more is shown");
  await row(page, 3).click();
  await until(async () => (await selected(page)) === "3", "record 3 is selected");
});

test("the active row of the grid is named while it has an element, and only then", async ({ page, server }) => {
  const { task } = await turn(server, "a2a-1.0", "long 300");
  await open(page, server, task);
  await step_to(page, "Home");
  const named = () => grid(page).getAttribute("aria-activedescendant"), scroll = (top) => grid(page).evaluate((e, y) => { e.scrollTop = y; }, top);
  const first = await row(page, 1).getAttribute("id");
  await until(async () => (await named()) === first, "the first row is named");
  await scroll(1e9);
  await row(page, 1).waitFor({ state: "detached" });
  same(await named(), null, "the active row out of sight");
  await scroll(0);
  await until(async () => (await named()) === first, "the first row is named again");
});

test("everything by keyboard: steps, ends, details, menus", async ({ page, server }) => {
  const { task } = await turn(server, "a2a-1.0", "tools");
  await open(page, server, task);
  await step_to(page, "End");
  const last = (await lines(`${server.url}/debug/tasks/${task}/records`)).at(-1).seq;
  await until(async () => (await selected(page)) === String(last), "the last record after End");
  await page.keyboard.press("ArrowUp");
  await until(async () => (await selected(page)) === String(last - 1), "the one before after ArrowUp");
  same(await page.locator(".grid").getAttribute("aria-activedescendant"), await page.locator('.grid .row[aria-selected="true"]').getAttribute("id"), "the active row");
  await page.keyboard.press("Enter");
  check(await page.evaluate(() => document.activeElement.classList.contains("detail")), "Enter does not go to the details");
  await page.keyboard.press("Escape");
  check(await page.evaluate(() => document.activeElement.classList.contains("grid")), "Escape does not go back");
  await page.keyboard.press("d");
  same(await page.locator(".detail").isVisible(), false, "the details are there after d");
  await page.locator("summary", { hasText: "Download" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  same(await page.evaluate(() => document.activeElement.dataset.format), "records", "the first entry of the menu");
  await page.keyboard.press("Escape");
  same(await page.locator("details.menu[open]").count(), 0, "open menus");
});

test("a task that does not exist, and one of somebody else, are explained", async ({ page, server }) => {
  await page.goto(`${server.url}/inspect/01a1f091-0000-7001-a6b8-d11e223b0d8b`);
  await page.locator(".empty.refused").waitFor();
  contains(await page.locator(".empty").innerText(), "There is no such task.");
}, { allowed: /404/ });

test("another A2A server: its card and its stream, through this server, if it is allowed", async ({ page, server }) => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-inspect-")), file = join(folder, "dragoman.yaml");
  writeFileSync(file, JSON.stringify({ agents: [{ id: "hello", type: "hello" }], inspect_remote: true, outbound: { allow: ["127.0.0.1"] } }));
  const near = await start("--store", "memory:", "-c", file);
  try {
    await page.goto(`${near.url}/inspect`);
    await page.fill("#remote-url", server.url);
    await page.fill("#remote-words", "tools");
    await page.click("text=Read the card");
    await page.locator(".remote-card h3", { hasText: "Demo" }).waitFor();
    await page.click("text=Send and inspect");
    await row(page, 1).waitFor();
    await step_to(page, "End");
    await until(async () => (await page.locator(".task .body").textContent()).includes("sunny in Oakland"), "the answer of the other server");
    await page.goto(`${server.url}/inspect`);
    await page.locator(".panel.drop").waitFor();
    same(await page.locator("#remote-url").count(), 0, "forms on a server that does not allow it");
  } finally {
    await end(near);
    rmSync(folder, { recursive: true });
  }
});

test("another A2A server: its card cannot send the token to a third one, and the part of an answer that was cut off is shown", async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-inspect-")), file = join(folder, "dragoman.yaml"), calls = [];
  writeFileSync(file, JSON.stringify({ agents: [{ id: "hello", type: "hello" }], inspect_remote: true, outbound: { allow: ["127.0.0.1"] } }));
  const third = createServer((request, response) => { // its answer has no end
    calls.push(request.headers.authorization ?? "no token");
    response.writeHead(200, { "Content-Type": "text/event-stream", "Content-Length": "1000" });
    response.write('data: {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}\n\n');
    setTimeout(() => response.destroy(), 300);
  });
  const other = createServer((_request, response) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ name: "Other", supportedInterfaces: [{ protocolBinding: "JSONRPC", protocolVersion: "1.0", url: `http://127.0.0.1:${third.address().port}/` }] }));
  });
  for (const s of [third, other]) await new Promise((r) => s.listen(0, "127.0.0.1", r));
  const near = await start("--store", "memory:", "-c", file);
  try {
    await page.goto(`${near.url}/inspect`);
    await page.fill("#remote-url", `http://127.0.0.1:${other.address().port}`);
    await page.fill("#remote-token", "a-secret");
    await page.click("text=Send and inspect");
    await page.locator(".remote-card .error").waitFor();
    contains(await page.locator(".remote-card .error").innerText(), "names another server");
    same(calls.length, 0, "calls of the third server");
    await page.fill("#remote-token", "");
    await page.click("text=Send and inspect");
    await row(page, 1).waitFor();
    same_json(calls, ["no token"], "calls of the third server without a token");
    contains(await page.locator("h1, .view-header, header").allInnerTexts().then((l) => l.join(" ")), "cut off");
  } finally {
    await end(near);
    third.close();
    other.close();
    rmSync(folder, { recursive: true });
  }
}, { allowed: /ERR_INCOMPLETE_CHUNKED_ENCODING|net::/ });

// ---- compare ------------------------------------------------------------------------------------------------------------

const settled = async (page, of) => until(async () => (await page.locator(".place").innerText()).startsWith(`${of} of ${of} `), "all events are shown");

test("compare: the naive client shows the text twice, the other one once [R004-10, R004-12]", async ({ page, server }) => {
  await page.goto(`${server.url}/compare`);
  await settled(page, 5);
  same(await page.locator("#naive").innerText(), "Processing...Hello worldHello world!", "the naive client");
  same(await page.locator("#ours").innerText(), "Hello world!", "the answer");
  same(await page.locator("#doing").isVisible(), false, "the indicator is there at the end");
  for (const format of ["ai-sdk", "ag-ui", "openai-chat", "openai-responses"])
    same(await page.locator(`.others tr[data-format="${format}"] td`).first().innerText(), "Hello world!", `the answer in ${format}`);
  contains(await page.locator(".advice").innerText(), "working-status-text");
  await page.focus("[data-run=text]");
  for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowLeft");
  same(await page.locator("#naive").innerText(), "Processing...", "the naive client after two events");
  same(await page.locator("#ours").innerText(), "", "the answer after two events");
  same(await page.locator("#doing").innerText(), "Processing...", "the indicator after two events");
});

test("compare: the better agents have no progress in the content", async ({ page, server }) => {
  await page.goto(`${server.url}/compare`);
  for (const [run, naive] of [["none", "Hello worldHello world!"], ["data", "Hello worldHello world!"], ["artifact", "Hello world!Hello world!"]]) {
    await page.click(`[data-run=${run}]`);
    await until(async () => (await page.locator("#naive").innerText()) === naive, `${run}: the naive client shows ${naive}`);
    same(await page.locator("#ours").innerText(), "Hello world!", `the answer of ${run}`);
  }
});

test("compare: a live run of the demo agent", async ({ page, server }) => {
  await page.goto(`${server.url}/compare`);
  await page.click("[data-run=live]");
  await page.locator("#doing:visible").waitFor();
  await until(async () => (await page.locator(".verdict.good").count()) > 0 && (await page.locator("#ours").innerText()).startsWith("That took"), "the answer");
  check((await page.locator("#naive").innerText()).length > (await page.locator("#ours").innerText()).length, "the naive client does not show it twice");
});

test("compare: its records open in the inspector beside it", async ({ page, server }) => {
  await page.goto(`${server.url}/compare`);
  await settled(page, 5);
  await page.click("text=Inspect these records");
  await page.locator("#drawer .grid .row").first().waitFor();
  contains(await page.locator("#drawer .alerts").innerText(), "working-status-text");
});

// ---- operate ------------------------------------------------------------------------------------------------------------

test("operate: figures, agents, live tasks, and the trace of one task", async ({ page, server }) => {
  const r = await json(`${server.url}/message:send`, { method: "POST", headers: { "A2A-Version": "1.0", "Content-Type": "application/json" },
    body: JSON.stringify({ message: { messageId: id("m"), role: "ROLE_USER", parts: [{ text: "slow 600" }] }, configuration: { returnImmediately: true } }) });
  await page.goto(`${server.url}/operate`);
  await page.locator(".agent-list a", { hasText: "demo" }).waitFor();
  await page.locator("table.tasks", { hasText: r.task.id }).waitFor();
  same(await page.locator(".charts .chart").count(), 9, "charts");
  await until(async () => (await page.locator(".chart", { hasText: "Active runs" }).locator("b").innerText()) !== "0", "a run is counted");
  await until(async () => ((await page.locator(".chart .line").first().getAttribute("d")) ?? "").startsWith("M"), "the first chart has a line");
  await page.fill("#operate-task", r.task.id);
  await page.click("text=Show the trace");
  await page.locator(".trace td", { hasText: "working" }).first().waitFor();
  await page.click("text=Inspect its records");
  await row(page, 1).waitFor();
  await fetch(`${server.url}/tasks/${r.task.id}:cancel`, { method: "POST", headers: { "A2A-Version": "1.0", "Content-Type": "application/json" }, body: "{}" });
});

test("with tokens: callers see their own tasks and no figures; the curl line has no token", async ({ page, context, browser }) => {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-inspect-")), file = join(folder, "dragoman.yaml");
  writeFileSync(file, JSON.stringify({ agents: [{ id: "demo", type: "demo", default: true }], inspect: "owner",
    tokens: [{ token: "caller-secret", principal: "ann" }, { token: "operator-secret", principal: "root", role: "operator" }] }));
  const closed = await start("--store", "memory:", "-c", file);
  try {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const sent = await json(`${closed.url}/message:send`, { method: "POST", headers: { "A2A-Version": "1.0", "Content-Type": "application/json", Authorization: "Bearer caller-secret" },
      body: JSON.stringify({ message: { messageId: id("m"), role: "ROLE_USER", parts: [{ text: "echo hello" }] } }) });
    await page.goto(`${closed.url}/operate`);
    await page.fill("#token", "caller-secret");
    await page.keyboard.press("Enter");
    await page.locator(".refused").waitFor();
    contains(await page.locator(".refused").innerText(), "This view is for operators");
    same(await page.locator(".chart").count(), 0, "charts of a caller");
    await page.goto(`${closed.url}/inspect/${sent.task.id}`);
    await row(page, 1).waitFor();
    await page.locator("summary", { hasText: "Copy as curl" }).click();
    await page.locator('.menu-list button[data-format="a2a-1.0"]:not(:has-text("("))').click();
    const line = await until(async () => { const t = await page.evaluate(() => navigator.clipboard.readText()); return t.startsWith("curl") && t; }, "the line is in the clipboard");
    contains(line, "$DRAGOMAN_TOKEN");
    check(!line.includes("caller-secret"), "the token is in the line");
    contains(execFileSync("sh", ["-c", line], { encoding: "utf8", timeout: 60000, env: { ...process.env, DRAGOMAN_TOKEN: "caller-secret" } }), "hello");
    const other = await browser.newContext(), operator = await other.newPage();
    await operator.goto(`${closed.url}/operate`);
    await operator.fill("#token", "operator-secret");
    await operator.keyboard.press("Enter");
    await operator.locator(".chart").first().waitFor();
    await other.close();
    await page.goto("about:blank"); // it may still load parts of columns
  } finally {
    await end(closed);
    rmSync(folder, { recursive: true });
  }
}, { allowed: /401|403/ });

await run_tests(tests, { args: ["--store", "memory:", "-c", join(HERE, "agents.yaml")] });
