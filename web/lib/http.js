// Requests to the server that the page comes from. The page asks for the token once and stores it for the tab. A request that was
// refused is sent again with the token.
const KEY = "dragoman-token";
let token = sessionStorage.getItem(KEY) ?? "", asking = null;
let ask_user = async () => { throw new HttpError("this server needs a token", 401); };

export class HttpError extends Error {
  constructor(message, status = 0, body = null) { super(message); this.status = status; this.body = body; }
}

// ask(refused): a promise of the token; refused: the one before was wrong.
export const on_token_needed = (ask) => { ask_user = ask; };
export const has_token = () => token !== "";

async function new_token(refused) {
  asking ??= ask_user(refused).finally(() => { asking = null; });
  token = await asking;
  sessionStorage.setItem(KEY, token);
}

// fetch() with the token. The path starts with "/".
export async function request(path, { headers = {}, ...options } = {}) {
  for (;;) {
    const used = token;
    const r = await fetch(path, { ...options, headers: used ? { ...headers, Authorization: `Bearer ${used}` } : headers });
    if (r.status !== 401 || r.headers.has("X-Dragoman-Remote")) return r; // a 401 of another server is its own
    await r.body?.cancel().catch(() => {});
    if (used === token) await new_token(used !== "");
  }
}

// The message of an error response, in the shape of any of our protocols.
export async function error_of(r) {
  const body = await r.json().catch(() => null), e = body?.error ?? body;
  const message = typeof e === "string" ? e : e?.message ?? body?.message;
  return new HttpError(message ? `${message}${e?.pointer ? ` (${e.pointer})` : ""}` : `the server answered with status ${r.status}`, r.status, body);
}

export async function get_json(path, options) {
  const r = await request(path, options);
  if (!r.ok) throw await error_of(r);
  return r.json();
}
