// Provider: the queries and changes that the module declares, each as a form made of its schema.
import { confirm, el, json, problem, table, words } from "./dom.js";
import { get, post } from "./api.js";
import { asked, choice, every } from "./scopes.js";

// declares tells whether a provider declares anything that this page offers.
export const declares = (c, mode) => (c.native_queries ?? []).length > 0 ||
  (mode === "on" && (c.native_mutations ?? []).length > 0);

export async function native(place, slot) {
  const [found, c] = await Promise.all([every(), get("/v1/capabilities")]);
  place.append(el("h2", {}, "Provider"));
  if (found.list.length === 0) {
    place.append(el("p", {}, "This slot has no scope yet: nothing was recorded."));
    return;
  }
  const all = [...(c.native_queries ?? []).map((d) => ({ d, path: "/v1/native-query" })),
    ...(slot.settings.mode === "on" ? (c.native_mutations ?? []) : []).map((d) => ({ d, path: "/v1/mutations" }))];
  const scope = choice(found);
  const one = el("div");
  const choose = el("select", { onchange: () => show() }, all.map(({ d, path }, i) => el("option", { value: i },
    `${d.name}${path === "/v1/mutations" ? " (a change)" : ""}`)));
  const show = () => one.replaceChildren(...(all.length > 0 ? form(all[Number(choose.value)], scope) : []));
  place.append(el("p", {}, "What the module of ", words(c.provider), " declares, in its own words."),
    el("form", { onsubmit: (e) => e.preventDefault() }, scope.node, el("label", { class: "wide" }, "Query or change",
      choose)), one);
  show();
}

// form asks for the parameters, sends them, and shows the answer as the module declares.
function form({ d, path }, scope) {
  const schema = d.schema ?? older(d.params ?? "");
  const fields = Object.entries(schema.properties ?? {}).map(([name, s]) => field(name, s ?? {},
    (schema.required ?? []).includes(name)));
  const changes = path === "/v1/mutations";
  const answer = el("div", { role: "status" });
  return [el("p", {}, words(d.about ?? "")), el("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      const params = Object.fromEntries(fields.map((f) => [f.name, f.value()]).filter(([, v]) => v !== undefined));
      if (changes && !await confirm(`Make the change ${d.name}?`, "The provider carries it out at once.",
        "Make it")) return;
      answer.replaceChildren("asking");
      const r = await post(path, { scope: asked(scope.value()), name: d.name, params, ...(changes ?
        { reason: "asked for on the page" } : {}) });
      answer.replaceChildren(...(changes ? [el("p", {}, words(r.status)), ...shown(d.show, r.trace?.details ?? {})] :
        shown(d.show, r.result)));
    } catch (e) {
      answer.replaceChildren(problem(e));
    }
  } }, fields.map((f) => f.node), el("button", {}, changes ? "Change" : "Ask")), answer];
}

// older is a schema for a list of names: "query, limit?".
function older(params) {
  const names = params.split(",").map((n) => n.trim()).filter(Boolean);
  return { properties: Object.fromEntries(names.map((n) => [n.replace("?", ""), {}])),
    required: names.filter((n) => !n.endsWith("?")) };
}

function field(name, s, required) {
  const type = [s.type].flat().find((t) => t !== "null");
  const choices = s.enum ?? (type === "boolean" ? [true, false] : null);
  const number = type === "integer" || type === "number";
  const input = choices ? el("select", { required }, el("option", { value: "" }, ""), choices.map((c) => el("option",
    { value: JSON.stringify(c) }, String(c)))) : el("input", { required, spellcheck: "false", autocomplete: "off",
    type: number ? "number" : "text", step: type === "number" ? "any" : undefined, min: s.minimum, max: s.maximum,
    dir: "auto", placeholder: number || type === "string" ? "" : "JSON" });
  const value = () => {
    const text = input.value;
    if (text === "") return undefined;
    if (choices || number) return JSON.parse(text);
    if (type === "string") return text;
    try {
      return JSON.parse(text);
    } catch (e) {
      if (type === undefined) return text;
      throw new Error(`${name}: want JSON`);
    }
  };
  return { name, value, node: el("label", { class: "key" }, `${name}${required ? " (required)" : ""}`, input,
    el("small", {}, words(s.description ?? ""))) };
}

// at is the value at a JSON Pointer.
const at = (v, pointer) => (pointer ?? "").split("/").slice(1).reduce((o, k) =>
  (o !== null && typeof o === "object" ? o[k.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined), v);

const plain = (v) => (v === undefined || v === null || v === false ? "" : v === true ? "*" :
  typeof v === "object" ? JSON.stringify(v) : String(v));

// shown is an answer in the form that the module declares; one of another form is JSON.
function shown(show, answer) {
  const part = show ? at(answer, show.at) : undefined;
  if (show?.as === "text" && typeof part === "string") return [el("pre", { dir: "auto", tabindex: "0" }, part)];
  const rows = Array.isArray(part) ? part : part !== null && typeof part === "object" ? [part] : undefined;
  if (show?.as === "table" && rows) {
    if (rows.length === 0) return [el("p", {}, "There is nothing.")];
    const cut = (text, n) => (n ? [...text].slice(0, n).join("") : text);
    const below = (row) => (show.below ?? []).flatMap((p) => [at(row, p)].flat()).map((v) => plain(v?.text ?? v))
      .filter(Boolean).join("\n");
    return [table("Answer", [...show.columns.map((c) => c.title), ...(show.below?.length > 0 ? [""] : [])],
      rows.map((row) => [...show.columns.map((c) => cut(plain(at(row, c.at)), c.cut)),
        ...(show.below?.length > 0 ? [el("pre", { dir: "auto" }, below(row))] : [])])),
    ...(at(answer, show.next) && show.next ? [el("p", {}, "There is more: after ", words(at(answer, show.next)))] : [])];
  }
  return [json(answer)];
}
