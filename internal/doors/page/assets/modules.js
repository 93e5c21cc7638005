// Modules: what each module is and may do, as memhost inspect tells it, and a form that prints its configuration.
import { el, facts, json, problem, table } from "./dom.js";
import { get } from "./api.js";

export async function modules(place) {
  const manifest = await get("/v1/manifest");
  const listed = await get("/v1/modules").catch((e) => ({ modules: [], problem: e }));
  const serves = (m) => m.sha256 === manifest.module.sha256;
  const all = listed.modules.toSorted((a, b) => serves(b) - serves(a) || a.name.localeCompare(b.name));
  const one = el("div");
  const choose = el("select", { onchange: () => one.replaceChildren(...shown(all[Number(choose.value)])) },
    all.map((m, i) => el("option", { value: i }, `${m.name} ${m.version}${serves(m) ? " (serves)" : ""}`)));
  place.append(el("h2", {}, "Modules"),
    listed.problem ? problem(listed.problem) : el("form", { onsubmit: (e) => e.preventDefault() },
      el("label", { class: "wide" }, "Module", choose)), one,
    el("h2", {}, "Configuration in effect"), json(manifest.config),
    el("details", {}, el("summary", {}, "The whole run manifest"), json({ ...manifest, scopes: undefined })));
  if (all.length > 0) one.append(...shown(all[0]));
}

function shown(m) {
  const f = m.manifest;
  const params = (d) => (d.schema ? Object.keys(d.schema.properties ?? {}).map((n) =>
    ((d.schema.required ?? []).includes(n) ? n : `${n}?`)).join(", ") : d.params ?? "");
  const named = (list) => (list ?? []).map((d) => [d.name, params(d), d.about ?? ""]);
  const some = (title, heads, rows) => (rows.length === 0 ? [] : [el("h2", {}, title), table(title, heads, rows)]);
  return [el("p", {}, f.description ?? ""),
    facts([["module", `${m.name} ${m.version}`], ["sha256", m.sha256], ["bytes", m.bytes], ["interface", f.abi],
      ["engine", m.engine], ["powers", m.powers], ["operations", m.operations], ["capabilities", m.capabilities],
      ["warnings", m.warnings]]),
    ...some("Providers", ["name", "kind", "note"], f.providers.map((p) => [p.name, p.kind, p.note ?? ""])),
    ...some("Routes: all that the module can send", ["name", "class", "origin", "call"], (f.routes ?? []).map((r) =>
      [r.name, r.class, r.origin, r.statement ?? `${r.method} ${r.path}`])),
    ...some("Native queries", ["name", "parameters", "what it is"], named(f.native_queries)),
    ...some("Native mutations", ["name", "parameters", "what it is"], named(f.native_mutations)),
    el("h2", {}, "Configure it"), form(m),
    el("details", {}, el("summary", {}, "Schema of the configuration"), json(f.config_schema))];
}

// form asks for the keys of the schema, and prints the block for memhost.yaml. A secret is asked for by its name only.
function form(m) {
  const schema = m.manifest.config_schema ?? {};
  const keys = Object.entries(schema.properties ?? {}).map(([name, s]) => field(name, resolved(s, schema),
    (schema.required ?? []).includes(name)));
  const provider = el("select", {}, m.manifest.providers.map((p) => el("option", { value: p.name }, p.name)));
  const yaml = el("pre", { tabindex: "0", "aria-label": "YAML" });
  // originOf is the URL to which the secret at a key goes.
  const originOf = (key) => {
    const secret = (m.manifest.secrets ?? []).find((d) => d.from === `/${key}`);
    const origin = (m.manifest.origins ?? []).find((o) => o.name === secret?.origin);
    return keys.find((k) => origin?.from === `/${k.name}`)?.text() || "URL";
  };
  const print = () => {
    const chosen = m.manifest.providers.find((p) => p.name === provider.value);
    const word = chosen.kind === "control" ? "condition" : "backend";
    const lines = keys.map((k) => k.line()).filter(Boolean);
    const secrets = keys.filter((k) => k.secret() !== "").map((k) => `  ${JSON.stringify(k.secret())}: {env: ${
      k.secret().toUpperCase().replace(/[^A-Z0-9]/g, "_")}, origin: ${JSON.stringify(originOf(k.name))}}`);
    yaml.textContent = [`memory:`, `  ${word}: ${chosen.name}`, `  ${word}s:`,
      `    ${chosen.name}:${lines.length === 0 ? " {}" : ""}`, ...lines.map((l) => `      ${l}`),
      ...(secrets.length === 0 ? [] : ["secrets:", ...secrets])].join("\n") + "\n";
  };
  const asked = el("form", { oninput: print, onsubmit: (e) => e.preventDefault() },
    el("label", {}, "Provider", provider), keys.map((k) => k.node));
  print();
  return el("div", {}, asked, el("p", {}, "For memhost.yaml. Keys that are empty have their default:"), yaml);
}

// resolved follows a reference inside the schema.
function resolved(s, schema) {
  if (!s.$ref?.startsWith("#/")) return s;
  const found = s.$ref.slice(2).split("/").reduce((at, k) => at?.[k.replaceAll("~1", "/").replaceAll("~0", "~")],
    schema);
  return { ...found, ...s };
}

const isSecret = (s) => s.properties?.secret !== undefined || [...(s.anyOf ?? []), ...(s.oneOf ?? [])].some(isSecret);

function field(name, s, required) {
  const about = s.description ?? s.title ?? "";
  const secret = isSecret(s);
  const types = [s.type].flat();
  const simple = secret || s.enum || types.some((t) => ["string", "integer", "number", "boolean"].includes(t));
  const choices = s.enum ?? (types.includes("boolean") ? [true, false] : null);
  const text = s.default === undefined ? "" : JSON.stringify(s.default);
  const input = choices && !secret ? el("select", {}, el("option", { value: "" }, `default ${text}`), choices.map((c) =>
    el("option", { value: JSON.stringify(c) }, JSON.stringify(c)))) : el("input", { spellcheck: "false",
    autocomplete: "off", required, placeholder: secret ? "name of the secret, never its value" : simple ? text :
      `JSON ${text}`, type: !secret && types.some((t) => t === "integer" || t === "number") ? "number" : "text" });
  const value = () => {
    const given = input.value.trim();
    if (secret) return `{secret: ${JSON.stringify(given)}}`;
    if (choices || input.type === "number") return given;
    if (types.includes("string")) return JSON.stringify(given);
    try {
      return JSON.stringify(JSON.parse(given)); // JSON is YAML
    } catch (e) {
      return `${JSON.stringify(given)} # this key wants JSON`;
    }
  };
  return { name, text: () => input.value.trim() || (typeof s.default === "string" ? s.default : ""),
    line: () => (input.value.trim() === "" ? required ? `${name}: # to fill in` : "" : `${name}: ${value()}`),
    secret: () => (secret ? input.value.trim() : ""),
    node: el("label", { class: "key" }, `${name}${required ? " (required)" : ""}`, input, el("small", {}, about)) };
}
