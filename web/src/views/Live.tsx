// Live: what serves, how it is, what ends as it ends, and what is open.
import type { ComponentChild } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api";
import { asked, choices, nameOf, type Found } from "../ask";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { Link } from "../parts/Link";
import { Loaded, useLoad } from "../parts/Loaded";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import { useLines, useSlot } from "../slot";
import type { Health, Manifest, Mode, Readiness, Scope, Step } from "../wire";
import { kept } from "../kept";
import { Latency } from "./Latency";
import { Operations } from "./Operations";
import { Steps } from "./Steps";

export function Live() {
  const [got] = useLoad(() => Promise.all([get<Manifest>("/v1/manifest"), get<Mode>("/v1/mode"), choices()]), []);
  return <Loaded got={got}>{([manifest, mode, found]) => <Seen manifest={manifest} mode={mode} found={found} />}</Loaded>;
}

const shownOperations = 20;

function Seen({ manifest, mode, found }: { manifest: Manifest; mode: Mode; found: Found }) {
  const slot = useSlot();
  const [steps, setSteps] = useState<{ nth: number; list: Step[] }>({ nth: 0, list: manifest.steps });
  const [health, askHealth] = useLoad(() => get<Health>("/v1/health"), []);
  const [now, setNow] = useState(Date.now());
  const soon = useRef(0);
  const swapping = useRef(false);
  useEffect(() => {
    const every = setInterval(() => setNow(Date.now()), 15_000);
    return () => { clearInterval(every); clearTimeout(soon.current); };
  }, []);
  useLines((line) => {
    if (line.kind !== "step" || !line.step) {
      // a busy slot draws the page twice a second, not with each operation
      soon.current ||= window.setTimeout(() => { soon.current = 0; setNow(Date.now()); }, 500);
      return;
    }
    const step = line.step;
    const first = !swapping.current; // a new start or swap
    setSteps(({ nth, list }) => (first ? { nth: nth + 1, list: [step] } : { nth, list: [...list, step] }));
    swapping.current = step.name !== "serve" && step.verdict !== "fail";
    if (step.name === "serve" && step.verdict === "pass") setTimeout(slot.again, 500); // another one serves
  });
  const lines = kept(now - 3_600_000);
  const errors = lines.filter((l) => l.code).length;
  const open = found.list.filter((s) => s.queued + s.pending + s.lost > 0);
  const sum = (of: (s: Found["list"][number]) => number) => open.reduce((n, s) => n + of(s), 0);
  return (
    <>
      <ul class="tiles">
        <Tile name="serves" value={<Words>{manifest.provider}</Words>} />
        <Tile name="mode" value={mode.read_only ? "read-only" : "writable"} />
        <Tile name="operations" value={String(lines.length)} />
        <Tile name="errors" value={String(errors)} bad={errors > 0} />
        <Tile name="queued" value={String(sum((s) => s.queued))} />
        <Tile name="pending" value={String(sum((s) => s.pending))} />
        <Tile name="lost" value={String(sum((s) => s.lost))} bad={sum((s) => s.lost) > 0} />
      </ul>
      <section class="card"><h2>Latency</h2><Latency lines={lines} now={now} /></section>
      <section class="card"><h2>Operations</h2><Operations of={lines.slice(-shownOperations).toReversed()} /></section>
      <section class="card"><h2>What is open</h2><Open list={open} />
        <p class="quiet">{`${found.list.length}${found.more ? " or more" : ""} scopes. `}<Link to="turns">Their turns</Link></p></section>
      <div class="columns">
        <section class="card"><h2>Serving</h2><Facts of={[["provider", manifest.provider], ["kind", manifest.condition_kind],
          ["module", `${manifest.module.name} ${manifest.module.version}`], ["sha256", manifest.module.sha256],
          ["since", <Time at={manifest.serving_since} />], ["load", manifest.load_generation], ["tokenizer", manifest.tokenizer],
          ["mode", mode.read_only ? "read-only" : "writable"],
          ["capabilities", manifest.capabilities.capabilities], ["warnings", manifest.warnings ?? []]]} /></section>
        <section class="card"><h2>Backend</h2>
          <Loaded got={health}>{(h) => <Facts of={[["status", <State of={h.status} />], ["backend", h.backend_name],
            ["version", h.backend_version], ["isolation", h.isolation], ["consistency", h.consistency_model],
            ["answered in", `${h.latency_ms} ms`], ["warnings", h.warnings as string[]]]} />}</Loaded>
          <p><button type="button" onClick={askHealth}>Ask again</button></p>
          <h2>Steps</h2><Steps of={steps.list} nth={steps.nth} /></section>
      </div>
    </>
  );
}

const Tile = ({ name, value, bad }: { name: string; value: ComponentChild; bad?: boolean }) => (
  <li class="tile"><span class="quiet">{name}</span><b class={bad ? "bad" : ""}>{value}</b></li>
);

// Open lists the scopes with open events, and asks the backend about them.
function Open({ list }: { list: Found["list"] }) {
  const [said, start] = useDoing();
  const settle = (scope: Scope) => start("asking the backend", async () => {
    const r = await post<Readiness>("/v1/readiness", { scope: asked(scope), timeout_ms: 0 });
    const ids = Object.entries(r.event_ids).map(([name, of]): [string, string[]] => [name, (of as string[]).slice(0, 20)]);
    return <><p><Words>{nameOf(scope)}</Words>: <State of={r.status} />{` by ${r.method}`}</p><Facts of={ids} /></>;
  });
  if (list.length === 0) return <p>Every event of every scope is settled.</p>;
  return (
    <>
      <Table caption="Scopes with open events" heads={["scope", "queued", "pending", "lost", ""]} rows={list.map((s) =>
        [nameOf(s.scope), s.queued, s.pending, s.lost, <button type="button" onClick={() => settle(s.scope)}>Look now</button>])} />
      {said}
    </>
  );
}

