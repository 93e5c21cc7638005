// Ask: a question, and the context as a model would see it.
import { useRef, useState } from "preact/hooks";
import { get, post } from "../api";
import { choices, nameOf, type Found as Scopes } from "../ask";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Loaded, useLoad } from "../parts/Loaded";
import { Nothing } from "../parts/Nothing";
import { ScopeChoice, scopeOf } from "../parts/ScopeChoice";
import { State } from "../parts/State";
import { useDoing } from "../parts/Doing";
import { Words } from "../parts/Words";
import type { Query } from "../route";
import { declaredBy, type ListedModule, type Manifest, type ModuleList, type Result, type Scope } from "../wire";
import { Context } from "./Context";
import { Found } from "./Found";
import { Others } from "./Others";
import { Waterfall } from "./Waterfall";

export function Ask({ about }: { about: Query }) {
  const [got] = useLoad(() => Promise.all([choices(), get<Manifest>("/v1/manifest"),
    get<ModuleList>("/v1/modules").catch(() => ({ modules: [] }))]), []);
  return (
    <>
      <h2>Ask</h2>
      <Loaded got={got}>{([found, manifest, { modules }]) => (found.list.length === 0 ? <Nothing /> :
        <Form found={found} manifest={manifest} modules={modules ?? []} about={about} />)}</Loaded>
    </>
  );
}

function Form({ found, manifest, modules, about }: { found: Scopes; manifest: Manifest; modules: ListedModule[]; about: Query }) {
  const [chosen, choose] = useState(about.scope ?? nameOf(found.list[0].scope));
  const query = useRef<HTMLInputElement>(null);
  const tokens = useRef<HTMLInputElement>(null);
  const [answer, start] = useDoing();
  const submit = (e: Event) => {
    e.preventDefault();
    const scope = scopeOf(found, chosen);
    void start("asking", async () => {
      const asked = query.current?.value ?? "";
      const maxTokens = Number(tokens.current?.value);
      const result = await post<Result>("/v1/retrieve", { query: asked, scope, session_id: "page", budget: { max_tokens: maxTokens } });
      return <><Answer result={result} scope={scope} />
        <Others key={`${asked} ${maxTokens}`} {...{ result, query: asked, maxTokens, scope, manifest, modules }} />
        <Technical result={result} /></>;
    });
  };
  return (
    <>
      <p class="lead">What would an agent get? A question from here is a real retrieval, which logs and metrics tell apart by
        origin: page. <Costs manifest={manifest} modules={modules} /></p>
      <form onSubmit={submit} class="card">
        <ScopeChoice found={found} value={chosen} onChange={choose} />
        <label class="wide">Question<input ref={query} required dir="auto" class="words" defaultValue={about.query ?? "What is known about the user?"} /></label>
        <label>Tokens<input ref={tokens} type="number" min={1} defaultValue="1500" /></label>
        <button class="act">Ask</button>
      </form>
      {answer}
    </>
  );
}

function Answer({ result, scope }: { result: Result; scope: Scope }) {
  const t = result.trace;
  return (
    <>
      <div class="columns">
        <section class="card">
          <h3>Context</h3>
          {result.formatted_context === "" ? <p>There is no memory for this question.</p> :
            <Context text={result.formatted_context} evidence={result.evidence} />}
          <Facts of={[["tokens", t?.token_count === undefined ? "" : `${t.token_count}${t.truncated ? ", cut to the budget" : ""}`],
            ["took", t?.latency_ms === undefined ? "" : `${t.latency_ms} ms`],
            ["complete", t?.consistency ? <State of={t.consistency} /> : null], ["warnings", t?.warnings ?? []]]} />
          {result.formatted_context === "" ? null : <Copy text={result.formatted_context} />}
        </section>
        <section class="card why" aria-label="Why" tabIndex={0}><h3>Why</h3><Found result={result} scope={scope} /></section>
      </div>
    </>
  );
}

// Technical is how the answer came about, for whoever looks for a fault.
function Technical({ result }: { result: Result }) {
  return (
    <>
      <section class="card"><h3>Where the time went</h3><Waterfall of={result.trace ?? {}} /></section>
      <details><summary>Raw: the backend's answers as they came</summary><Json of={result.raw} /></details>
      <details><summary>Trace</summary><Json of={result.trace} /></details>
    </>
  );
}

// Copy puts a text into the clipboard.
function Copy({ text }: { text: string }) {
  const [said, say] = useState("Copy the context");
  return <p><button type="button" onClick={() => navigator.clipboard.writeText(text).then(() => say("Copied"),
    () => say("The browser does not let this page copy"))}>{said}</button></p>;
}

// Costs says beforehand what a question costs, as the serving module's manifest declares it. A module that declares
// nothing is announced wherever it asks something on the network.
function Costs({ manifest, modules }: { manifest: Manifest; modules: ListedModule[] }) {
  const module = modules.find((m) => m.sha256 === manifest.module.sha256);
  const declared = module && declaredBy(module);
  const calls = declared?.model_calls?.filter((c) => c.operation === "retrieve" && meets(manifest.config, c));
  if (calls?.length === 0 || (declared && !calls && (declared.origins ?? []).length === 0)) {
    return <>A question costs no model call with this provider.</>;
  }
  if (!calls) {
    return <strong class="wait">{`${manifest.provider} asks a backend, which may call a model: a question may cost what an ` +
      "agent's question costs."}</strong>;
  }
  const each = calls.map((c) => `a call of ${c.model === "language" ? "a language" : "an embedding"} model (${c.about})`);
  return <strong class="wait">A question costs what an agent's question costs: <Words>{each.join("; ")}</Words>.</strong>;
}

// meets tells whether a declaration counts with the effective configuration.
function meets(config: unknown, { pointer, equals }: { pointer?: string; equals?: unknown }) {
  if (!pointer) return true;
  const at = pointer.slice(1).split("/").reduce<unknown>((v, k) =>
    (v as Record<string, unknown> | undefined)?.[k.replaceAll("~1", "/").replaceAll("~0", "~")], config);
  return at !== undefined && at !== null && (equals === undefined || JSON.stringify(at) === JSON.stringify(equals));
}
