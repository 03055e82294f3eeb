// A form from a JSON schema: an object of texts, numbers, switches and choices, or one of them. Anything else is written as
// JSON. Agents and users write the schema: a member of it may have any type.
import { el, new_id } from "../lib/dom.js";
import { put_text } from "../lib/tree.js";
import { one_line } from "./cards.js";

const MAX_FIELDS = 40, MAX_OPTIONS = 100;
const SIMPLE = ["string", "number", "integer", "boolean"];

const is_object = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
const if_number = (v) => (typeof v === "number" ? v : undefined), if_size = (v) => (v >= 0 ? v : undefined);
const type_of = (schema) => [schema.type].flat().find((t) => t !== "null");
const options_of = (schema) => (Array.isArray(schema.enum) && schema.enum.length > 0 && schema.enum.length <= MAX_OPTIONS ? schema.enum : null);

// { element, read() } of a schema that may be missing: read() returns the value, or throws an Error that describes the
// invalid field.
export function form_of(schema, value, title = "Answer") {
  if (!is_object(schema)) return json_form(value, title);
  const start = value ?? schema.default, properties = type_of(schema) === "object" && is_object(schema.properties) ? Object.entries(schema.properties) : [];
  if (SIMPLE.includes(type_of(schema)) || options_of(schema)) return simple_form(schema, start, title);
  if (!properties.length || properties.length > MAX_FIELDS) return json_form(start, title);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const start_of = (name) => (is_object(start) && Object.hasOwn(start, name) ? start[name] : undefined);
  const fields = properties.map(([name, s]) => field_of(name, is_object(s) ? s : {}, required.includes(name), start_of(name)));
  return {
    element: el("div", { class: "form" }, fields.map((f) => f.element)),
    read: () => Object.fromEntries(fields.map((f) => [f.name, f.read()]).filter(([, v]) => v !== undefined)),
  };
}

// An empty text is a text; an empty number is missing.
function simple_form(schema, start, title) {
  const is_text = type_of(schema) === "string" && !options_of(schema), field = field_of(title, schema, !is_text, start);
  return { element: el("div", { class: "form" }, field.element), read: () => field.read() ?? "" };
}

function json_form(value, title) {
  const box = el("textarea", { rows: 3, class: "mono", "aria-label": `${title} as JSON or text`, spellcheck: "false" });
  box.value = value === undefined ? "" : JSON.stringify(value, null, 2);
  return { element: box, read: () => { try { return JSON.parse(box.value); } catch { return box.value; } } };
}

function field_of(name, schema, is_required, value) {
  const id = `f-${new_id()}`, type = type_of(schema), options = options_of(schema), max_length = if_size(if_number(schema.maxLength));
  const start = value ?? schema.default, title = one_line(typeof schema.title === "string" ? schema.title : name, 200);
  let input, read;
  const missing = () => { if (is_required) throw new Error(`${title} is missing`); };
  if (options) {
    input = el("select", { id }, !is_required && el("option", { value: "" }), options.map((o, i) => el("option", { value: String(i), selected: o === start }, one_line(o))));
    read = () => (input.value === "" ? missing() : options[Number(input.value)]);
  } else if (type === "boolean") {
    input = el("input", { id, type: "checkbox", checked: start === true });
    read = () => input.checked;
  } else if (type === "number" || type === "integer") {
    input = el("input", { id, type: "number", step: type === "integer" ? "1" : "any", min: if_number(schema.minimum), max: if_number(schema.maximum), value: if_number(start) });
    read = () => {
      if (input.value === "") return missing();
      const n = Number(input.value);
      if (!Number.isFinite(n) || (type === "integer" && !Number.isInteger(n))) throw new Error(`${title} must be ${type === "integer" ? "a whole number" : "a number"}`);
      return n;
    };
  } else if (type === "string") {
    input = el(max_length > 200 || schema.format === "multi-line" ? "textarea" : "input", { id, maxlength: max_length });
    if (typeof start === "string") input.value = start;
    read = () => (input.value === "" ? missing() : input.value);
  } else {
    input = el("textarea", { id, rows: 2, class: "mono", spellcheck: "false" });
    if (start !== undefined) input.value = JSON.stringify(start);
    read = () => {
      if (!input.value.trim()) return missing();
      try { return JSON.parse(input.value); } catch { throw new Error(`${title} must be JSON`); }
    };
  }
  const label = el("label", { for: id }, title, is_required && el("span", { class: "soft" }, " (required)"));
  return { name, read, element: el("div", { class: type === "boolean" ? "field switch" : "field" }, label, input, typeof schema.description === "string" && put_text(el("p", { class: "soft small" }), schema.description)) };
}
