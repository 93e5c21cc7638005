// Operations are the last ones that ended, each with its waterfall on demand.
import { useState } from "preact/hooks";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import type { Line } from "../wire";
import { Waterfall } from "./Waterfall";

export function Operations({ of }: { of: Line[] }) {
  const [chosen, choose] = useState<Line | null>(null);
  if (of.length === 0) return <p class="quiet">None yet: each is shown here as it ends.</p>;
  const most = Math.max(...of.map((l) => l.latency_ms ?? 0)) || 1;
  return (
    <>
      <ul class="operations">{of.map((l) => (
        <li key={`${l.at} ${l.operation}`}>
          <button type="button" class="row plain" aria-pressed={l === chosen} onClick={() => choose(l === chosen ? null : l)}>
            <Time at={l.at} />
            <span class="grow">{l.operation}{l.origin ? <span class="badge">{l.origin}</span> : null}</span>
            {l.code ? <State of="error">{l.code}</State> : null}
            <span class="spark" aria-hidden="true"><span style={{ inlineSize: `${(100 * (l.latency_ms ?? 0)) / most}%` }} /></span>
            <span class="number">{l.latency_ms} ms</span>
          </button>
          {l === chosen ? <section class="inside"><h3>{`Where the ${l.latency_ms} ms of ${l.operation} went`}</h3>
            <Layers of={l} /><Waterfall of={{ ...l, host_ms: undefined }} /></section> : null}
        </li>
      ))}</ul>
    </>
  );
}

// Layers shows how an operation's time divides into host, guest and backend.
function Layers({ of }: { of: Line }) {
  const [all, backend, plugin] = [of.latency_ms ?? 0, of.backend_ms ?? 0, of.plugin_ms ?? 0];
  const layers: [string, number][] = [["host", Math.max(0, all - backend - plugin)], ["plugin", plugin], ["backend", backend]];
  return (
    <div class="layers" role="img" aria-label={layers.map(([name, ms]) => `${name} ${ms.toFixed(2)} ms`).join(", ")}>
      {layers.filter(([, ms]) => ms > 0).map(([name, ms], i) => <span class={`e${i}`}
        style={{ flexGrow: ms / (all || 1) }} title={`${name} ${ms.toFixed(2)} ms`}>{name}</span>)}
    </div>
  );
}
