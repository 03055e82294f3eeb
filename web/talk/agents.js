// The agents of this server, and their cards.
import { get_json } from "../lib/http.js";
import { get_card } from "../lib/a2a.js";

let agents = null;
const cards = new Map();

// [{ id, name, description, base }], the default agent first
export function load_agents() {
  agents ??= get_json("/.well-known/ai-catalog.json").then((catalog) => catalog.entries.map((e) => ({
    id: e.identifier.split(":").pop(), name: e.displayName, description: e.description,
    base: new URL(e.url).pathname.replace(/\/\.well-known\/.*$/, ""),
  })));
  agents.catch(() => { agents = null; });
  return agents;
}

export function load_card(agent) {
  if (!cards.has(agent.id)) cards.set(agent.id, get_card(agent.base).catch((e) => { cards.delete(agent.id); throw e; }));
  return cards.get(agent.id);
}
