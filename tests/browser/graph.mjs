// LangGraph graphs, in Python and in JavaScript, through the page in chromium: each text is there once. TAP.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contains, ROOT, run_tests, same, show, until } from "./lib/harness.mjs";

const INTEROP = join(ROOT, "tests/interop");
const GRAPHS = {
  Python: {
    config: join(INTEROP, "langgraph/projects/acceptance/langgraph.json"), graph: "routed",
    command: [join(INTEROP, "langgraph/.venv-langgraph/bin/python"), "-m", "dragoman.worker"],
  },
  JavaScript: { config: join(INTEROP, "langgraph-js/projects/server/langgraph.json") },
};
// what a person writes, one message after the other, and the text that the last answer shows once
const CONVERSATIONS = [
  [["tokens"], "Hello there friend"],
  [["example"], "Processing complete"],
  [["everything"], "You sent 1 part(s)"],
  [["city", "Bern"], "Going to Bern, Bern"],
];

// What the page shows of the agents at the end of a run.
async function settled(page, text) {
  await page.locator("#stop").waitFor({ state: "hidden" });
  await until(async () => !(await page.locator('.agent[aria-busy="true"]').count()), "the answer is shown");
  const all = (await page.locator(".agent").allInnerTexts()).join("\n");
  contains(all, text);
  return all;
}

async function converse(page, url, words, wanted) {
  await page.goto(url);
  for (const [i, text] of words.entries()) {
    await page.fill("#composer-text", text);
    await page.press("#composer-text", "Enter");
    if (i + 1 < words.length) await settled(page, "Which city?");
  }
  const all = await settled(page, wanted);
  same(all.split(wanted).length - 1, 1, `the number of ${show(wanted)} in ${show(all)}`);
}

const folder = mkdtempSync(join(tmpdir(), "dragoman-browser-")), file = join(folder, "dragoman.yaml");
process.on("exit", () => rmSync(folder, { recursive: true }));
writeFileSync(file, JSON.stringify({ agents: Object.entries(GRAPHS).map(([language, settings], i) =>
  ({ id: language.toLowerCase(), type: "langgraph", default: i === 0, settings })) }));

const tests = Object.keys(GRAPHS).flatMap((language) => CONVERSATIONS.map(([words, wanted]) => ({
  name: `${language} graph, ${words.join(", ")}: the page shows the text once`,
  run: ({ page, server }) => converse(page, `${server.url}/agents/${language.toLowerCase()}/`, words, wanted),
})));
await run_tests(tests, { args: ["--store", "memory:", "-c", file] });
