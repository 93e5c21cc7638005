// Provider: the queries and changes that the serving module declares, each as a form made of its schema.
import { useState } from "preact/hooks";
import { get, post } from "../api";
import { choices, nameOf, type Found } from "../ask";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Loaded, useLoad } from "../parts/Loaded";
import { Nothing } from "../parts/Nothing";
import { SchemaField, typed, valueOf } from "../parts/SchemaField";
import { ScopeChoice, scopeOf } from "../parts/ScopeChoice";
import { Words } from "../parts/Words";
import { useSlot } from "../slot";
import type { Capabilities, MutationReceipt, NativeDecl, NativeResult, Schema } from "../wire";
import { Answered } from "./Answered";

// declares tells whether a provider declares anything that this page offers.
export const declares = (c: Capabilities, mode: string) => (c.native_queries ?? []).length > 0 ||
  (mode === "on" && (c.native_mutations ?? []).length > 0);

export function Provider() {
  const [got] = useLoad(() => Promise.all([choices(), get<Capabilities>("/v1/capabilities")]), []);
  return (
    <>
      <h2>Provider</h2>
      <Loaded got={got}>{([found, c]) => (found.list.length === 0 ? <Nothing /> : <Choose found={found} of={c} />)}</Loaded>
    </>
  );
}

interface Offered {
  d: NativeDecl;
  change: boolean;
}

function Choose({ found, of }: { found: Found; of: Capabilities }) {
  const slot = useSlot();
  const [name, setName] = useState(nameOf(found.list[0].scope));
  const [chosen, choose] = useState(0);
  const all: Offered[] = [...(of.native_queries ?? []).map((d) => ({ d, change: false })),
    ...(slot.settings.mode === "on" ? (of.native_mutations ?? []) : []).map((d) => ({ d, change: true }))];
  return (
    <>
      <p class="lead">What the module of <Words>{of.provider}</Words> declares, in its own words.</p>
      <form onSubmit={(e) => e.preventDefault()}>
        <ScopeChoice found={found} value={name} onChange={setName} />
        <label class="wide">Query or change
          <select value={String(chosen)} onChange={(e) => choose(Number(e.currentTarget.value))}>{all.map(({ d, change }, i) =>
            <option value={String(i)}>{`${d.name}${change ? " (a change)" : ""}`}</option>)}</select></label>
      </form>
      {all[chosen] ? <Form key={chosen} of={all[chosen]} scope={scopeOf(found, name)} /> : null}
    </>
  );
}

// Form asks for the parameters, sends them, and shows the answer as the module declares.
function Form({ of: { d, change }, scope }: { of: Offered; scope: object }) {
  const schema = (d.schema as Schema | undefined) ?? older(d.params ?? "");
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [answer, start] = useDoing();
  const submit = async (e: Event) => {
    e.preventDefault();
    const wrong: Record<string, string> = {};
    const params: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(typed(e.currentTarget as HTMLFormElement))) {
      try {
        const value = valueOf(text, schema.properties?.[name] ?? {});
        if (value !== undefined) params[name] = value;
      } catch (fault) {
        wrong[name] = (fault as Error).message;
      }
    }
    setFaults(wrong);
    if (Object.keys(wrong).length > 0) return;
    if (change && !await confirm(`Make the change ${d.name}?`, "The provider carries it out at once.", "Make it")) return;
    await start("asking", async () => {
      if (!change) {
        const r = await post<NativeResult>("/v1/native-query", { scope, name: d.name, params });
        return <Answered show={d.show} of={r.result} />;
      }
      const r = await post<MutationReceipt>("/v1/mutations", { scope, name: d.name, params, reason: "asked for on the page" });
      return <><p><Words>{r.status}</Words></p><Answered show={d.show} of={r.trace?.details ?? {}} /></>;
    });
  };
  return (
    <section class="card">
      <p><Words>{d.about ?? ""}</Words></p>
      <form onSubmit={submit}>
        {Object.entries(schema.properties ?? {}).map(([name, s]) => <SchemaField name={name} schema={s}
          required={(schema.required ?? []).includes(name)} fault={faults[name]} />)}
        <button class="act">{change ? "Change" : "Ask"}</button>
      </form>
      {answer}
    </section>
  );
}

// older is a schema for a list of names: "query, limit?".
function older(params: string): Schema {
  const names = params.split(",").map((n) => n.trim()).filter(Boolean);
  return { properties: Object.fromEntries(names.map((n) => [n.replace("?", ""), {}])),
    required: names.filter((n) => !n.endsWith("?")) };
}
