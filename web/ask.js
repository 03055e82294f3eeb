// What an agent asks besides its words: calls to approve, choices, an address to sign in (docs/agents.md).
import { make } from "./make.js";

const data_of = (message, type) => (message?.parts ?? []).map((p) => p.data).filter((d) => d?.type === type);

// Elements below the question. answer(parts, label): sends these parts; the label is shown as the user's message.
export function controls_of(message, answer) {
  const requests = data_of(message, "approval-request");
  const [question] = data_of(message, "question");
  const [auth] = data_of(message, "auth-request");
  if (requests.length) return [approvals(requests, answer)];
  if (Array.isArray(question?.choices)) return [choices(question.choices, answer)];
  if (auth) return [sign_in(auth, answer)];
  return [];
}

// The text of a question that is only data.
export function question_of(message) {
  const [question] = data_of(message, "question"), [auth] = data_of(message, "auth-request");
  if (data_of(message, "approval-request").length) return "The agent asks for your approval.";
  return question?.text ?? auth?.reason ?? "";
}

// What the user's message says: its text, or the decisions in it.
export function label_of(message) {
  const words = (message?.parts ?? []).map((p) => p.text ?? "").join("");
  return words || data_of(message, "approval").map((d) => (d.approved ? "Approved" : "Rejected")).join(", ");
}

function button(name, label, on_click) {
  const b = make("button", { type: "button", class: name, "aria-label": label }, name === "choice" ? label : label.split(" ")[0]);
  b.addEventListener("click", on_click);
  return b;
}

// Every request has its two buttons. The answer is sent when all are decided.
function approvals(requests, answer) {
  const box = make("section", { class: "controls", "aria-label": "Approvals" }), decided = new Map();
  const decide = (request, row, approved) => {
    decided.set(request.id, approved);
    row.querySelectorAll("button").forEach((b) => (b.disabled = true));
    row.append(make("span", { class: "decision" }, approved ? "approved" : "rejected"));
    if (decided.size < requests.length) return;
    const parts = requests.map((r) => ({ data: { type: "approval", id: r.id, approved: decided.get(r.id) } }));
    answer(parts, label_of({ parts }));
  };
  for (const request of requests) {
    const row = make("div", { class: "request" });
    row.append(
      make("div", { class: "name" }, request.tool ?? "a tool"),
      make("pre", { tabindex: "0" }, JSON.stringify(request.arguments ?? {}, null, 2)),
      button("approve", `Approve ${request.tool ?? ""}`, () => decide(request, row, true)),
      button("reject", `Reject ${request.tool ?? ""}`, () => decide(request, row, false)));
    box.append(row);
  }
  return box;
}

function choices(list, answer) {
  const box = make("section", { class: "controls", "aria-label": "Choices" });
  for (const choice of list) box.append(button("choice", String(choice), () => answer([{ text: String(choice) }], String(choice))));
  return box;
}

// A link only to a web address: the agent chose it.
function sign_in(auth, answer) {
  const box = make("section", { class: "controls", "aria-label": "Sign in" });
  if (/^https?:\/\//i.test(auth.url ?? ""))
    box.append(make("a", { href: auth.url, target: "_blank", rel: "noopener noreferrer" }, `Sign in at ${new URL(auth.url).host}`));
  else if (auth.scheme) box.append(make("span", {}, `Scheme: ${auth.scheme}`));
  box.append(button("done", "Continue", () => answer([{ text: "done" }], "Signed in")));
  return box;
}
