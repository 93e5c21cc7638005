// SchemaField is one key of a JSON Schema as a field of a form.
import type { Schema } from "../wire";
import { Words } from "./Words";

// resolved follows a reference inside the schema.
export function resolved(s: Schema, schema: Schema): Schema {
  if (!s.$ref?.startsWith("#/")) return s;
  const found = s.$ref.slice(2).split("/").reduce<unknown>((at, k) =>
    (at as Record<string, unknown> | undefined)?.[k.replaceAll("~1", "/").replaceAll("~0", "~")], schema) as Schema | undefined;
  return { ...found, ...s };
}

// isSecret tells whether a key takes the name of a secret.
export const isSecret = (s: Schema): boolean => s.properties?.secret !== undefined ||
  [...(s.anyOf ?? []), ...(s.oneOf ?? [])].some(isSecret);

const typesOf = (s: Schema) => [s.type].flat();
const isNumber = (s: Schema) => typesOf(s).some((t) => t === "integer" || t === "number");
const choicesOf = (s: Schema) => s.enum ?? (typesOf(s).includes("boolean") ? [true, false] : null);

// valueOf reads what was typed into a field; undefined where nothing was. It throws an Error that says what is wanted.
export function valueOf(text: string, s: Schema): unknown {
  if (text.trim() === "") return undefined;
  if (isSecret(s)) return { secret: text.trim() };
  if (choicesOf(s)) return JSON.parse(text);
  if (isNumber(s)) {
    const n = Number(text);
    if (Number.isNaN(n)) throw new Error("want a number");
    return n;
  }
  if (typesOf(s).includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch (e) {
    if (s.type === undefined && !s.anyOf && !s.oneOf) return text;
    throw new Error("want JSON");
  }
}

interface Props {
  name: string;
  schema: Schema;
  required?: boolean;
  fault?: string; // what is wrong with it
}

// SchemaField is read from its form, by its name.
export function SchemaField({ name, schema: s, required, fault }: Props) {
  const text = s.default === undefined ? "" : JSON.stringify(s.default);
  const choices = isSecret(s) ? null : choicesOf(s);
  const plain = isSecret(s) || isNumber(s) || typesOf(s).includes("string");
  const said = `said-${name}`;
  return (
    <label class="key">{`${name}${required ? " (required)" : ""}`}
      {choices ? <select name={name} required={required} aria-describedby={said}>
        <option value="">{text ? `default ${text}` : ""}</option>
        {choices.map((c) => <option value={JSON.stringify(c)}>{String(c)}</option>)}
      </select> : <input name={name} required={required} spellcheck={false} autoComplete="off" dir="auto"
        type={!isSecret(s) && isNumber(s) ? "number" : "text"} step={typesOf(s).includes("number") ? "any" : undefined}
        min={s.minimum} max={s.maximum} aria-invalid={fault ? true : undefined} aria-describedby={said}
        placeholder={isSecret(s) ? "name of the secret, never its value" : plain ? text : `JSON ${text}`} />}
      <small id={said}>{fault ? <strong class="bad"><Words>{fault}</Words> </strong> : null}
        <Words>{s.description ?? s.title ?? ""}</Words></small>
    </label>
  );
}

// typed is what was typed into the fields of a form, by name.
export const typed = (form: HTMLFormElement) =>
  Object.fromEntries([...new FormData(form)].map(([name, v]) => [name, typeof v === "string" ? v : ""]));
