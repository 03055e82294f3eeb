// Where a text stops being JSON. The errors of JSON.parse differ between browsers, and many of them have no position.
const SPACE = /[ \t\n\r]*/y;
const TOKEN = /[[\]{},:]|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const EXPECTED = { value: "a value", "first item": "a value or ]", "first name": "a name in double quotes or }", name: "a name in double quotes", colon: "a colon" };

const match = (pattern, text, at) => { pattern.lastIndex = at; return pattern.exec(text)?.[0] ?? ""; };

// What may follow a token; undefined: the token is not allowed there. `open` has the brackets that close what is open.
function next_state(state, token, open) {
  const close = () => { open.pop(); return "end"; };
  if (state === "colon") return token === ":" ? "value" : undefined;
  if (state === "end") {
    if (token === ",") return open.at(-1) === "]" ? "value" : "name";
    return token === open.at(-1) ? close() : undefined;
  }
  if (state === "name" || state === "first name") {
    if (token[0] === '"') return "colon";
    return token === "}" && state === "first name" ? close() : undefined;
  }
  if (token === "]" && state === "first item") return close();
  if (token === "[") { open.push("]"); return "first item"; }
  if (token === "{") { open.push("}"); return "first name"; }
  return /^[\]},:]/.test(token) ? undefined : "end";
}

// { offset, message }, or null: it is JSON.
export function json_error(text) {
  const open = [];
  for (let offset = 0, state = "value"; ;) {
    offset += match(SPACE, text, offset).length;
    const is_end = offset >= text.length, is_over = state === "end" && !open.length;
    if (is_end && is_over) return null;
    const token = match(TOKEN, text, offset), next = token && !is_over ? next_state(state, token, open) : undefined;
    if (next) {
      offset += token.length;
      state = next;
      continue;
    }
    const lines = text.slice(0, offset).split("\n");
    const expected = EXPECTED[state] ?? (is_over ? "the end of the text" : `a comma or ${open.at(-1)}`);
    const got = is_end ? "the end of the text" : text[offset] === '"' && !token ? "a string that is invalid or does not end" : String.fromCodePoint(text.codePointAt(offset));
    return { offset, message: `Invalid JSON at line ${lines.length}, column ${lines.at(-1).length + 1}: expected ${expected}, got ${got}` };
  }
}
