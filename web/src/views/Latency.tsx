// Latency is a plot of p50 and p99 by minute of the last hour. The slot keeps 2,000 operations of before this page was opened.
import { Time } from "../parts/Time";
import type { Line } from "../wire";

const [height, left, below] = [180, 44, 18];
const minute = 60_000;

const quantile = (sorted: number[], q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

export function Latency({ lines, now }: { lines: Line[]; now: number }) {
  const width = Math.max(320, Math.min(1500, innerWidth - 84)); // so that its text has the size of other text
  const last = Math.floor(now / minute);
  const minutes = new Map<number, number[]>();
  for (const l of lines) {
    const m = Math.floor(Date.parse(l.at) / minute);
    if (l.latency_ms !== undefined && m > last - 60) minutes.set(m, [...(minutes.get(m) ?? []), l.latency_ms]);
  }
  const points = [...minutes].map(([m, ms]) => {
    const sorted = ms.toSorted((a, b) => a - b);
    return { m, n: ms.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
  }).toSorted((a, b) => a.m - b.m);
  if (points.length === 0) return <p class="quiet">Nothing ended in the last hour.</p>;
  const most = Math.max(...points.map((p) => p.p99)) || 1;
  const x = (m: number) => left + ((m - last + 59) / 59) * (width - left - 4);
  const y = (ms: number) => height - below - (ms / most) * (height - below - 8);
  const path = (of: "p50" | "p99") => points.map((p, i) => `${i === 0 ? "M" : "L"}${x(p.m).toFixed(1)} ${y(p[of]).toFixed(1)}`).join(" ");
  const told = points.at(-1);
  return (
    <figure class="plot">
      <svg viewBox={`0 0 ${width} ${height}`} role="img"
        aria-label={`Latency by minute. Last: p50 ${told?.p50} ms, p99 ${told?.p99} ms of ${told?.n} operations.`}>
        {[0, 0.5, 1].map((part) => [<line x1={left} x2={width - 4} y1={y(part * most)} y2={y(part * most)} class="grid" />,
          <text x={left - 6} y={y(part * most) + 4} text-anchor="end">{Number((part * most).toPrecision(2))}</text>])}
        <text x={left} y={height - 3}>an hour ago</text>
        <text x={width - 4} y={height - 3} text-anchor="end">now</text>
        <path d={path("p99")} class="p99" />
        <path d={path("p50")} class="p50" />
        {points.map((p) => [<circle cx={x(p.m)} cy={y(p.p99)} r={2.5} class="p99" />,
          <circle cx={x(p.m)} cy={y(p.p50)} r={2.5} class="p50" />])}
      </svg>
      <figcaption class="quiet"><span class="key p50">p50</span> <span class="key p99">p99</span> in ms by minute, of {lines.length} operations
        {lines.length < 2000 ? "" : <> since <Time at={lines[0].at} /></>}</figcaption>
    </figure>
  );
}
