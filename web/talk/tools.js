// The tools that the page offers to an agent: the user writes them, and writes the results of their calls.
import { json_error } from "../lib/json_error.js";
import { load_tools } from "../lib/store.js";

const MAX_TOOLS = 32, MAX_KIB = 64, MAX_DEPTH = 64;
const MEMBERS = ["name", "description", "parameters", "returns"];

export const EXAMPLE = {
  name: "get_weather",
  description: "The weather at a place",
  parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
  returns: { type: "object", properties: { sky: { enum: ["sunny", "cloudy", "rain"] }, celsius: { type: "number" } }, required: ["sky"] },
};

const kind_of = (v) => (v === null ? "null" : Array.isArray(v) ? "an array" : typeof v === "object" ? "an object" : `a ${typeof v}`);
const is_deeper = (v, levels) => v !== null && typeof v === "object" && (!levels || Object.values(v).some((x) => is_deeper(x, levels - 1)));

// The list of tools in a text; an empty text has none. Throws an Error with what is wrong; its `offset`: where.
export function read_tools(text) {
  const n_bytes = new TextEncoder().encode(text).length;
  if (n_bytes > MAX_KIB << 10) throw new Error(`The tools have ${Math.ceil(n_bytes / 1024)} KiB. At most ${MAX_KIB} KiB are allowed.`);
  if (!text.trim()) return [];
  const error = json_error(text);
  if (error) throw Object.assign(new Error(`${error.message}.`), { offset: error.offset });
  const list = JSON.parse(text);
  if (!Array.isArray(list)) throw new Error(`Expected an array of tools, got ${kind_of(list)}.`);
  if (list.length > MAX_TOOLS) throw new Error(`There are ${list.length} tools. At most ${MAX_TOOLS} are allowed.`);
  for (const [i, tool] of list.entries()) {
    const fault = fault_of(tool, list.slice(0, i));
    if (fault) throw new Error(`Tool ${i + 1}: ${fault}.`);
  }
  return list;
}

function fault_of(tool, before) {
  if (kind_of(tool) !== "an object") return `expected an object, got ${kind_of(tool)}`;
  const unknown = Object.keys(tool).find((k) => !MEMBERS.includes(k));
  if (unknown !== undefined) return `unknown member ${JSON.stringify(unknown.slice(0, 80))}. Allowed members: ${MEMBERS.join(", ")}`;
  const { name, description = "" } = tool;
  if (name === undefined) return "the name is missing";
  if (typeof name !== "string") return `expected a text as name, got ${kind_of(name)}`;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) return `invalid name ${JSON.stringify(name.slice(0, 80))}. Allowed are 1 to 64 letters (A-Z, a-z), digits, _ and -`;
  const same_name = before.findIndex((t) => t.name === name);
  if (same_name >= 0) return `duplicate name ${JSON.stringify(name)}: tool ${same_name + 1} has it, too`;
  if (typeof description !== "string") return `expected a text as description, got ${kind_of(description)}`;
  for (const member of ["parameters", "returns"]) {
    if (!(member in tool)) continue;
    if (kind_of(tool[member]) !== "an object") return `expected a JSON Schema (an object) as ${member}, got ${kind_of(tool[member])}`;
    if (is_deeper(tool[member], MAX_DEPTH)) return `${member} is nested deeper than ${MAX_DEPTH} levels`;
  }
  return "";
}

// The tools that are stored for an agent.
export function tools_of(agent_id) {
  try { return read_tools(load_tools(agent_id)); } catch { return []; } // the page stores only a text that it has checked
}

// The member of a run's input; not there without tools. `returns` is only for the form of the result.
export function tools_input(agent_id) {
  const tools = tools_of(agent_id).map(({ name, description = "", parameters = { type: "object", properties: {} } }) => ({ name, description, parameters }));
  return tools.length ? { tools } : {};
}
