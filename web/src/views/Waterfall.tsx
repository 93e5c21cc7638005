// Waterfall shows the native calls on the time of an operation, each from its start to its end.
import { Facts } from "../parts/Facts";
import { Table } from "../parts/Table";
import type { IO } from "../wire";

export interface Timed {
  io?: IO[];
  latency_ms?: number;
  backend_ms?: number;
  plugin_ms?: number;
  host_ms?: number;
}

export function Waterfall({ of }: { of: Timed }) {
  const total = of.latency_ms || 1;
  const ms = (n?: number) => (n === undefined ? "" : `${n} ms`);
  const io = of.io ?? [];
  return (
    <div>
      {io.length === 0 ? <p>The backend was not asked.</p> : <Table caption="Native calls"
        heads={["route", "class", "status", "bytes out / in", "from ms", "ms", `0 to ${total} ms`]}
        rows={io.map((c) => [c.route, c.class, c.status, `${c.bytes_out} / ${c.bytes_in}`, c.start_ms ?? "", c.ms,
          <Lane call={c} total={total} />])} />}
      <Facts of={[["whole operation", ms(of.latency_ms)], ["in the backend", ms(of.backend_ms)],
        ["in the plugin", ms(of.plugin_ms)], ["in the host", ms(of.host_ms)]]} />
    </div>
  );
}

// Lane is a call as a bar from its start to its end.
function Lane({ call, total }: { call: IO; total: number }) {
  const percent = (ms: number) => `${Math.min(100, (100 * ms) / total)}%`;
  return (
    <div class="lane" role="img"
      aria-label={`${call.route}: ${call.ms} ms from ${call.start_ms ?? "an unknown time"} of ${total} ms`}>
      <span class={call.class} style={{ insetInlineStart: percent(call.start_ms ?? 0), inlineSize: percent(call.ms) }} />
    </div>
  );
}
