// Modules: what each module is and may do, as memhost inspect tells it, and a form that prints its configuration.
import { useState } from "preact/hooks";
import { get } from "../api";
import { Facts } from "../parts/Facts";
import { Failure } from "../parts/Failure";
import { Json } from "../parts/Json";
import { Loaded, useLoad } from "../parts/Loaded";
import { Table } from "../parts/Table";
import { Words } from "../parts/Words";
import { declaredBy, type ListedModule, type Manifest, type ModuleList, type NativeDecl, type Schema } from "../wire";
import { Yaml } from "./Yaml";

export function Modules() {
  const [got] = useLoad(() => Promise.all([get<Manifest>("/v1/manifest"),
    get<ModuleList>("/v1/modules").catch((e) => e as Error)]), []);
  return (
    <>
      <h2>Modules</h2>
      <Loaded got={got}>{([manifest, listed]) => (
        <>
          {listed instanceof Error ? <Failure of={listed} /> : <Choose of={listed.modules ?? []} serving={manifest.module.sha256} />}
          <h2>Configuration in effect</h2>
          <Json of={manifest.config} />
          <details><summary>The whole run manifest</summary><Json of={{ ...manifest, scopes: undefined }} /></details>
        </>
      )}</Loaded>
    </>
  );
}

function Choose({ of, serving }: { of: ListedModule[]; serving: string }) {
  const [chosen, choose] = useState(0);
  const serves = (m: ListedModule) => (m.sha256 === serving ? 1 : 0);
  const all = of.toSorted((a, b) => serves(b) - serves(a) || a.name.localeCompare(b.name));
  return (
    <>
      <form onSubmit={(e) => e.preventDefault()}>
        <label class="wide">Module<select value={String(chosen)} onChange={(e) => choose(e.currentTarget.selectedIndex)}>
          {all.map((m, i) => <option value={String(i)}>{`${m.name} ${m.version}${serves(m) ? " (serves)" : ""}`}</option>)}
        </select></label>
      </form>
      {all[chosen] ? <Shown key={chosen} of={all[chosen]} /> : null}
    </>
  );
}

const params = (d: NativeDecl) => {
  const schema = d.schema as Schema | undefined;
  return schema ? Object.keys(schema.properties ?? {}).map((n) => ((schema.required ?? []).includes(n) ? n : `${n}?`)).join(", ") :
    d.params ?? "";
};
const named = (list?: NativeDecl[]) => (list ?? []).map((d) => [d.name, params(d), d.about ?? ""]);

function Shown({ of: m }: { of: ListedModule }) {
  const f = declaredBy(m);
  return (
    <>
      <p class="lead"><Words>{f.description ?? ""}</Words></p>
      <section class="card"><Facts of={[["module", `${m.name} ${m.version}`], ["sha256", m.sha256], ["bytes", m.bytes],
        ["interface", f.abi], ["engine", m.engine], ["powers", m.powers], ["operations", m.operations],
        ["capabilities", m.capabilities], ["warnings", m.warnings ?? []]]} /></section>
      <Some title="Providers" heads={["name", "kind", "note"]} rows={f.providers.map((p) => [p.name, p.kind, p.note ?? ""])} />
      <Some title="Routes: all that the module can send" heads={["name", "class", "origin", "call"]}
        rows={(f.routes ?? []).map((r) => [r.name, r.class, r.origin, r.statement ?? `${r.method} ${r.path}`])} />
      <Some title="Native queries" heads={["name", "parameters", "what it is"]} rows={named(f.native_queries)} />
      <Some title="Native mutations" heads={["name", "parameters", "what it is"]} rows={named(f.native_mutations)} />
      <h2>Configure it</h2>
      <Yaml of={f} />
      <details><summary>Schema of the configuration</summary><Json of={f.config_schema} /></details>
    </>
  );
}

const Some = ({ title, heads, rows }: { title: string; heads: string[]; rows: string[][] }) => (rows.length === 0 ? null :
  <section class="card"><h3>{title}</h3><Table caption={title} heads={heads} rows={rows} /></section>);
