// Swap exchanges the provider: chosen from a list, with its configuration as a form made of its schema.
import { useRef, useState } from "preact/hooks";
import { post } from "../api";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { resolved, SchemaField, typed, valueOf } from "../parts/SchemaField";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import { useSlot } from "../slot";
import { calls, declaredBy, type Backfill, type BackfillPlan, type ListedModule, type Manifest, type Schema } from "../wire";

interface Offer {
  name: string;
  kind: "condition" | "backend";
  backend: boolean; // whether it has to ask somebody on the network
  about: string;
  schema: Schema;
}

const offersOf = (modules: ListedModule[]): Offer[] => modules.flatMap((m) => declaredBy(m).providers.map((p): Offer => ({
  name: p.name, kind: p.kind === "control" ? "condition" : "backend",
  backend: calls(m),
  about: [declaredBy(m).description, p.note].filter(Boolean).join(" "), schema: declaredBy(m).config_schema ?? {} })))
  .toSorted((a, b) => a.name.localeCompare(b.name));

export function Swap({ manifest, modules }: { manifest: Manifest; modules: ListedModule[] }) {
  const slot = useSlot();
  const offers = offersOf(modules);
  const [name, choose] = useState(manifest.provider);
  const [given, setGiven] = useState(false); // whether the block is given, or the slot's configuration counts
  const [faults, setFaults] = useState<Record<string, string>>({});
  const form = useRef<HTMLFormElement>(null);
  const [said, start] = useDoing();
  const offer = offers.find((o) => o.name === name);
  const required = offer?.schema.required ?? [];
  const keys = Object.entries(offer?.schema.properties ?? {}).map(([key, s]) => ({ key, s: resolved(s, offer?.schema ?? {}) }));

  // request is what the form asks for, or undefined with the faults shown at its fields.
  const request = () => {
    if (!offer || !form.current) return undefined;
    if (!given) return { [offer.kind]: offer.name };
    const fields = typed(form.current);
    const wrong: Record<string, string> = {};
    const config: Record<string, unknown> = {};
    for (const { key, s } of keys) {
      try {
        const value = valueOf(fields[key] ?? "", s);
        if (value !== undefined) config[key] = value;
        else if (required.includes(key)) wrong[key] = "is required";
      } catch (e) {
        wrong[key] = (e as Error).message;
      }
    }
    setFaults(wrong);
    return Object.keys(wrong).length > 0 ? undefined : { [offer.kind]: offer.name, config };
  };
  // told shows at its field what the slot says is wrong with one.
  const told = (e: unknown): never => {
    const message = (e as Error).message;
    const key = keys.find(({ key }) => new RegExp(`(^|[^a-z_])${key}([^a-z_]|$)`).test(message))?.key;
    if (key && given) setFaults({ [key]: message });
    throw e;
  };
  const attempt = () => {
    const q = request();
    if (q) void start("loading the module", async () => <Plan of={await post<BackfillPlan>("/v1/backfill/plan", q).catch(told)} />);
  };
  const change = async () => {
    const q = request();
    if (!q || !await confirm("Exchange the provider?", `${manifest.provider} is replaced by ${name}. Calls under way end first; ` +
      `when a step fails, ${manifest.provider} keeps serving. What was recorded before is not carried over.`, "Exchange it")) return;
    await start("working", async () => {
      const m = await post<Manifest>("/v1/swap", q).catch(told);
      return <><p>{`${m.provider} serves.`}</p><button type="button" onClick={slot.again}>Show what holds now</button></>;
    });
  };
  const fill = async () => {
    const q = request();
    if (!q || !await confirm("Fill it first, then let it serve?", `${name} is filled from the archive while ${manifest.provider} ` +
      "serves, and serves once it has everything.", "Fill it")) return;
    await start("working", async () => {
      const b = await post<Backfill>("/v1/backfill", q).catch(told);
      return <><p>{`${b.provider}: ${b.state}`}</p><button type="button" onClick={slot.again}>Show how far it is</button></>;
    });
  };
  return (
    <section class="card">
      <h3>Provider</h3>
      <fieldset class="offers">
        <legend class="quiet">{`${manifest.provider} serves`}</legend>
        {offers.map((o) => (
          <label class="offer"><input type="radio" name="provider" value={o.name} checked={o.name === name}
            onChange={() => { choose(o.name); setFaults({}); }} />
          <span><b>{o.name}</b> <span class="badge">{o.backend ? "asks a backend" : "runs here"}</span>
            <br /><small><Words>{o.about}</Words></small></span></label>
        ))}
      </fieldset>
      <form ref={form} key={name} onSubmit={(e) => { e.preventDefault(); void change(); }}>
        <label class="check"><input type="checkbox" checked={given} onChange={(e) => setGiven(e.currentTarget.checked)} />
          Give a configuration here, in place of the slot's own</label>
        {given ? keys.map(({ key, s }) => <SchemaField name={key} schema={s} required={required.includes(key)} fault={faults[key]} />) : null}
        <p class="buttons">
          <button type="button" onClick={attempt}>Try it</button>
          <button class="act">Exchange</button>
          {manifest.archive ? <button type="button" onClick={fill}>Fill it first</button> : null}
        </p>
      </form>
      {said}
    </section>
  );
}

// Plan says what filling a provider would send.
const Plan = ({ of: p }: { of: BackfillPlan }) => (
  <Facts of={[["loads", `${p.provider} can be loaded with this configuration`], ["events", p.events], ["scopes", p.scopes],
    ["tokens", `${p.tokens} (${p.tokenizer})`], ["native calls", p.native_calls], ["oldest", <Time at={p.oldest} />],
    ["newest", <Time at={p.newest} />], ["notes", p.notes]]} />
);
