// Others asks other memories the same question: each is filled with what this person's archive has, and removed again.
import { useState } from "preact/hooks";
import { post } from "../api";
import { useDoing } from "../parts/Doing";
import { Failure } from "../parts/Failure";
import { lines } from "../lines";
import { Words } from "../parts/Words";
import { alone, declaredBy, type Comparison, type ListedModule, type Manifest, type Result, type Scope } from "../wire";

interface Props {
  result: Result; // of the serving memory
  query: string;
  maxTokens: number;
  scope: Scope;
  manifest: Manifest;
  modules: ListedModule[];
}

const mostAsked = 8;

export function Others({ result, query, maxTokens, scope, manifest, modules }: Props) {
  const shadows = (manifest.followers ?? []).filter((f) => f.role === "shadow").map((f) => f.provider);
  const filled = !manifest.archive ? [] : modules.filter(alone).flatMap((m) => declaredBy(m).providers.map((p) => p.name))
    .filter((name) => name !== manifest.provider && name !== "no_memory" && !shadows.includes(name)).sort();
  const names = [...shadows, ...filled];
  const usual = filled.filter((name) => ["bm25", "full_history", "recall"].includes(name));
  const [chosen, choose] = useState(new Set([...shadows, ...(usual.length > 0 ? usual : filled.slice(0, 2))].slice(0, mostAsked)));
  const [said, start] = useDoing();
  const choice = (name: string) => <label class="check"><input type="checkbox" checked={chosen.has(name)} onChange={(e) => {
    const next = new Set(chosen);
    if (e.currentTarget.checked) next.add(name); else next.delete(name);
    choose(next);
  }} />{name}</label>;
  const ask = (e: Event) => {
    e.preventDefault();
    void start("filling the other memories, and asking them", async () => {
      const c = await post<Comparison>("/v1/compare", { scope, query, max_tokens: maxTokens,
        providers: names.filter((name) => chosen.has(name)) });
      return <Compared of={c} result={result} serving={manifest.provider} />;
    });
  };
  return (
    <section class="card">
      <h3>What would another memory give?</h3>
      {names.length === 0 ? null : <form onSubmit={ask} class="others">
        {shadows.length === 0 ? null : <fieldset class="choices"><legend class="quiet">Shadows: they get every turn, and are asked with
          what they have.</legend>{shadows.map(choice)}</fieldset>}
        {filled.length === 0 ? null : <fieldset class="choices"><legend class="quiet">Memories that need no server and no model. Each is
          filled from the archive, with at most 5,000 turns of this person, asked once, and removed.</legend>{filled.map(choice)}</fieldset>}
        <button class="act" disabled={chosen.size === 0 || chosen.size > mostAsked}>Ask them, too</button>
        {chosen.size > mostAsked ? <small>{`at most ${mostAsked} at a time`}</small> : null}
      </form>}
      {manifest.archive ? null : <p class="quiet">Other memories are filled from the archive, which this slot does not keep: start it
        with <code>memhost run --set memory.archive=true</code>, and what is recorded from then on can be compared.</p>}
      {said}
    </section>
  );
}

interface Column {
  name: string;
  role: string;
  context: string;
  tokens: number;
  ms?: number;
  fill?: number;
  error?: unknown;
}

function Compared({ of: c, result, serving }: { of: Comparison; result: Result; serving: string }) {
  const columns: Column[] = [{ name: serving, role: "serves", context: result.formatted_context,
    tokens: result.trace?.token_count ?? 0, ms: result.trace?.latency_ms },
  ...c.answers.map((a) => ({ name: a.provider, role: a.shadow ? "shadow" : "", context: a.formatted_context, tokens: a.tokens, ms: a.latency_ms, fill: a.fill_ms,
    error: a.error }))];
  const most = Math.max(1, ...columns.map((o) => o.tokens));
  const served = new Set(lines(result.formatted_context));
  const others = new Set(c.answers.flatMap((a) => lines(a.formatted_context)));
  return (
    <>
      <p class="quiet">{(c.answers.every((a) => a.shadow) ? "" : `Each was filled with ${c.events} turns` +
        (c.left_out > 0 ? `; ${c.left_out} were left out` : "") + ". ") + "Lines that only one side has are marked."}</p>
      <div class="columns compared">{columns.map((o, i) => (
        <section key={`${i} ${o.name}`}>
          <h4><Words>{o.name}</Words>{o.role ? <span class="badge">{o.role}</span> : null}</h4>
          {o.error ? <Failure of={o.error} /> : <>
            <div class="bar" role="img" aria-label={`${o.tokens} tokens`}>
              <span class="e0" style={{ inlineSize: `${(100 * o.tokens) / most}%` }} /></div>
            <p class="quiet">{`${o.tokens} tokens · ${Number((o.ms ?? 0).toPrecision(3))} ms` +
              (o.fill === undefined ? "" : ` · filled in ${Math.round(o.fill)} ms`)}</p>
            {o.context === "" ? <p>There is no memory for this question.</p> : <pre dir="auto" tabIndex={0} class="words"
              aria-label={`Context of ${o.name}`}>{o.context.split("\n").map((line) =>
                [lines(line).some((l) => !(i === 0 ? others : served).has(l)) ? <mark class="e2">{line}</mark> : line, "\n"])}</pre>}
          </>}
        </section>))}</div>
    </>
  );
}

