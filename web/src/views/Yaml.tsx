// Yaml asks for the keys of a module's schema, and prints the block for memhost.yaml. A secret is asked for by its name
// only.
import { useRef, useState } from "preact/hooks";
import { isSecret, resolved, SchemaField, typed, valueOf } from "../parts/SchemaField";
import type { Declared, Schema } from "../wire";

export function Yaml({ of }: { of: Declared }) {
  const [given, setGiven] = useState<Record<string, string>>({});
  const form = useRef<HTMLFormElement>(null);
  const schema = of.config_schema ?? {};
  const keys = Object.entries(schema.properties ?? {}).map(([name, s]) => ({ name, schema: resolved(s, schema),
    required: (schema.required ?? []).includes(name) }));
  return (
    <section class="card">
      <form ref={form} onInput={() => form.current && setGiven(typed(form.current))} onSubmit={(e) => e.preventDefault()}>
        <label>Provider<select name=" provider">{of.providers.map((p) => <option value={p.name}>{p.name}</option>)}</select></label>
        {keys.map((k) => <SchemaField name={k.name} schema={k.schema} required={k.required} />)}
      </form>
      <p>For memhost.yaml. Keys that are empty have their default:</p>
      <pre tabIndex={0} aria-label="YAML">{yaml(of, keys, given)}</pre>
    </section>
  );
}

interface Key {
  name: string;
  schema: Schema;
  required: boolean;
}

function yaml(of: Declared, keys: Key[], given: Record<string, string>): string {
  const typedIn = (name: string) => (given[name] ?? "").trim();
  const chosen = of.providers.find((p) => p.name === given[" provider"]) ?? of.providers[0];
  const word = chosen.kind === "control" ? "condition" : "backend";
  const line = ({ name, schema, required }: Key) => {
    const text = typedIn(name);
    if (text === "") return required ? `${name}: # to fill in` : "";
    if (isSecret(schema)) return `${name}: {secret: ${JSON.stringify(text)}}`;
    try {
      return `${name}: ${JSON.stringify(valueOf(text, schema))}`; // JSON is YAML
    } catch (e) {
      return `${name}: ${JSON.stringify(text)} # ${(e as Error).message}`;
    }
  };
  // originOf is the URL to which the secret at a key goes.
  const originOf = (key: string) => {
    const secret = (of.secrets ?? []).find((d) => d.from === `/${key}`);
    const origin = (of.origins ?? []).find((o) => o.name === secret?.origin);
    const from = keys.find((k) => origin?.from === `/${k.name}`);
    return (from && (typedIn(from.name) || (typeof from.schema.default === "string" ? from.schema.default : ""))) || "URL";
  };
  const lines = keys.map(line).filter(Boolean);
  const secrets = keys.filter((k) => isSecret(k.schema) && typedIn(k.name) !== "").map((k) =>
    `  ${JSON.stringify(typedIn(k.name))}: {env: ${typedIn(k.name).toUpperCase().replace(/[^A-Z0-9]/g, "_")}, origin: ${
      JSON.stringify(originOf(k.name))}}`);
  return [`memory:`, `  ${word}: ${chosen.name}`, `  ${word}s:`, `    ${chosen.name}:${lines.length === 0 ? " {}" : ""}`,
    ...lines.map((l) => `      ${l}`), ...(secrets.length === 0 ? [] : ["secrets:", ...secrets])].join("\n") + "\n";
}
