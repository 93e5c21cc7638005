// Side by side: what an agent got, and what the slot's shadows would have said to the same question.
import { useState } from "preact/hooks";
import { get, post } from "../api";
import { nameOf } from "../ask";
import { Empty } from "../parts/Empty";
import { Facts, type Fact } from "../parts/Facts";
import { Failure } from "../parts/Failure";
import { Loaded, useLoad } from "../parts/Loaded";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
import { Time } from "../parts/Time";
import { lines } from "../lines";
import { Words } from "../parts/Words";
import type { Shadow, ShadowAnswer, ShadowAnswers, ShadowList } from "../wire";

const pageSize = 10; // questions come with whole contexts

export function Side() {
  const [got] = useLoad(() => get<ShadowList>("/v1/shadows"), []);
  return <><h2>Side by side</h2><Loaded got={got}>{(list) => <Shadows of={list} />}</Loaded></>;
}

function Shadows({ of }: { of: ShadowList }) {
  const [provider, setProvider] = useState("");
  const [before, setBefore] = useState<string[]>([]); // where this page and those before it began
  const at = before.at(-1);
  const [got] = useLoad(() => post<ShadowAnswers>("/v1/shadows/answers", { limit: pageSize, ...(at ? { before: at } : {}),
    ...(provider ? { provider } : {}) }), [provider, at]);
  return (
    <>
      <p class="lead"><Words>{of.serving}</Words> serves. A shadow gets every event, too, and is asked a share of the questions
        after the agent has its answer. No agent sees what it says.</p>
      <div class="card"><Table caption="Shadows" heads={heads} rows={of.shadows.map(row)} /></div>
      <h2>Questions, the newest first</h2>
      <form onSubmit={(e) => e.preventDefault()}>
        <label>Shadow<select value={provider} onChange={(e) => { setProvider(e.currentTarget.value); setBefore([]); }}>
          <option value="">all</option>{of.shadows.map((s) => <option value={s.provider}>{s.provider}</option>)}</select></label>
      </form>
      <Loaded got={got}>{(page) => (
        <>
          {page.answers.length === 0 ? <Empty><p>No question was asked of a shadow yet.</p></Empty> :
            byQuestion(page.answers).map((answers) => <Question answers={answers} />)}
          <p class="buttons">
            <button type="button" disabled={before.length === 0} onClick={() => setBefore(before.slice(0, -1))}>Newer</button>
            <button type="button" disabled={!page.next} onClick={() => setBefore([...before, page.next ?? ""])}>Older</button>
          </p>
        </>
      )}</Loaded>
    </>
  );
}

const number = (n?: number, digits = 3) => (n === undefined || n === null ? "not known" : String(Number(n.toPrecision(digits))));

const heads = ["memory", "state", "events", "asked", "answers", "errors", "tokens", "ms at p50", "same turns"];

// row is a shadow beside the serving provider: each figure of a pair is the shadow's, then the serving provider's.
function row({ provider, state: is, progress: p, sample_percent: share, report: r }: Shadow) {
  return [provider, <State of={is} />, `${p.done} of ${p.events}`, `${share} %`, r.answers, r.failed,
    `${number(r.tokens_mean)} / ${number(r.serving_tokens_mean)}`,
    `${number(r.latency_p50_ms)} / ${number(r.serving_p50_ms)}`,
    r.overlap_mean === undefined ? "not known" : `${number(100 * r.overlap_mean)} %`];
}

// byQuestion puts the answers of several shadows to one question together.
function byQuestion(answers: ShadowAnswer[]) {
  const groups = new Map<string, ShadowAnswer[]>();
  for (const a of answers) {
    const key = JSON.stringify([a.at, a.query, a.scope, a.session_id]);
    groups.set(key, [...(groups.get(key) ?? []), a]);
  }
  return [...groups.values()];
}

// Question shows the contexts beside each other. A line that the other side lacks is marked, unless that has no answer.
function Question({ answers }: { answers: ShadowAnswer[] }) {
  const first = answers[0];
  const served = new Set(lines(first.serving_context));
  const answered = answers.filter((a) => !a.error);
  const others = answered.length === 0 ? served : new Set(answered.flatMap((a) => lines(a.formatted_context ?? "")));
  return (
    <section class="question card">
      <h3><Words>{first.query}</Words></h3>
      <p class="quiet"><Time at={first.at} /> <Words>{nameOf(first.scope)}</Words>, session <Words>{first.session_id}</Words></p>
      <div class="columns">
        <Column name={first.serving} role="serves" context={first.serving_context} other={others}
          about={[["tokens", first.serving_tokens], ["took", `${first.serving_latency_ms} ms`]]} />
        {answers.map((a) => (a.error ? <section><h4><Words>{a.provider}</Words></h4><Failure of={a.error} /></section> :
          <Column name={a.provider} role="shadow" context={a.formatted_context ?? ""} other={served}
            about={[["tokens", a.tokens], ["took", `${a.latency_ms} ms`],
              ["turns", a.overlap === undefined ? "one of the two names none" :
                `${a.both} of both, ${a.only_serving} only of ${a.serving}, ${a.only_shadow} only of ${a.provider}`],
              ["had not yet", a.behind ? `${a.behind} events` : ""]]} />))}
      </div>
    </section>
  );
}

function Column({ name, role, context, other, about }: { name: string; role: string; context: string; other: Set<string>;
  about: Fact[] }) {
  return (
    <section>
      <h4><Words>{name}</Words>{` (${role})`}</h4>
      {context === "" ? <p>There is no memory for this question.</p> :
        <pre dir="auto" tabIndex={0} aria-label={`Context of ${name}`} class="words">{context.split("\n").map((line) =>
          [lines(line).some((l) => !other.has(l)) ? <mark class="e0" title="the other side has no such line">{line}</mark> : line,
            "\n"])}</pre>}
      <Facts of={about} />
    </section>
  );
}
