// A2A 1.0 over JSON-RPC: the list of tasks, and the cancellation of one.
import { error_of, get_json, HttpError, request } from "./http.js";
import { new_id } from "./dom.js";

async function call(base, method, params) {
  const headers = { "Content-Type": "application/json", Accept: "application/json", "A2A-Version": "1.0" };
  const r = await request(`${base}/`, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: new_id(), method, params }) });
  if (!r.ok) throw await error_of(r);
  const body = await r.json();
  if (body.error) throw new HttpError(body.error.message ?? "error", r.status, body);
  return body.result;
}

export const list_tasks = (base, params) => call(base, "ListTasks", { pageSize: 50, historyLength: 1, ...params });
export const cancel_task = (base, id) => call(base, "CancelTask", { id });
export const get_card = (base) => get_json(`${base}/.well-known/agent-card.json`, { headers: { "A2A-Version": "1.0" } });

// TASK_STATE_INPUT_REQUIRED -> "input-required"
export const state_name = (task) => (task?.status?.state ?? "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-");
export const is_over = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);
export const is_waiting = (state) => ["input-required", "auth-required"].includes(state);
export const text_of = (message) => (message?.parts ?? []).map((p) => p.text ?? "").join("");
