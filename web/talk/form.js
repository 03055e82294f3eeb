// A form from a JSON schema: an object of texts, numbers, switches and choices. Anything else is written as JSON.
import { el, new_id } from "../lib/dom.js";

// { element, read() }: read() returns the value, or throws an Error that describes the invalid field.
export function form_of(schema, value) {
  const properties = schema?.type === "object" && schema.properties;
  if (!properties || !Object.keys(properties).length || Object.keys(properties).length > 40) return json_form(value ?? schema?.default);
  const fields = Object.entries(properties).map(([name, s]) => field_of(name, s ?? {}, (schema.required ?? []).includes(name), value?.[name]));
  return {
    element: el("div", { class: "form" }, fields.map((f) => f.element)),
    read() {
      const result = {};
      for (const f of fields) {
        const v = f.read();
        if (v !== undefined) result[f.name] = v;
      }
      return result;
    },
  };
}

function json_form(value) {
  const box = el("textarea", { rows: 3, class: "mono", "aria-label": "Answer as JSON or text", spellcheck: "false" });
  box.value = value === undefined ? "" : JSON.stringify(value, null, 2);
  return { element: box, read: () => { try { return JSON.parse(box.value); } catch { return box.value; } } };
}

function field_of(name, schema, is_required, value) {
  const id = `f-${new_id()}`, type = [schema.type].flat().find((t) => t !== "null");
  const options = Array.isArray(schema.enum) && schema.enum.length <= 100 ? schema.enum : null;
  const start = value ?? schema.default;
  let input, read;
  const missing = () => { if (is_required) throw new Error(`${name} is missing`); };
  if (options) {
    input = el("select", { id }, !is_required && el("option", { value: "" }), options.map((o, i) => el("option", { value: String(i), selected: o === start }, String(o))));
    read = () => (input.value === "" ? missing() : options[Number(input.value)]);
  } else if (type === "boolean") {
    input = el("input", { id, type: "checkbox", checked: start === true });
    read = () => input.checked;
  } else if (type === "number" || type === "integer") {
    input = el("input", { id, type: "number", step: type === "integer" ? "1" : "any", min: schema.minimum, max: schema.maximum, value: start });
    read = () => {
      if (input.value === "") return missing();
      const n = Number(input.value);
      if (!Number.isFinite(n) || (type === "integer" && !Number.isInteger(n))) throw new Error(`${name} must be a number`);
      return n;
    };
  } else if (type === "string") {
    input = el(schema.maxLength > 200 || schema.format === "multi-line" ? "textarea" : "input", { id, maxlength: schema.maxLength });
    if (start !== undefined) input.value = start;
    read = () => (input.value === "" ? missing() : input.value);
  } else {
    input = el("textarea", { id, rows: 2, class: "mono", spellcheck: "false" });
    if (start !== undefined) input.value = JSON.stringify(start);
    read = () => {
      if (!input.value.trim()) return missing();
      try { return JSON.parse(input.value); } catch { throw new Error(`${name} must be JSON`); }
    };
  }
  const label = el("label", { for: id }, schema.title ?? name, is_required && el("span", { class: "soft" }, " (required)"));
  return { name, read, element: el("div", { class: type === "boolean" ? "field switch" : "field" }, label, input, schema.description && el("p", { class: "soft small" }, schema.description)) };
}
