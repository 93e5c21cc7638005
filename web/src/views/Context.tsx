// Context is what a model would see, with each item in the colour of its evidence. Ranges are bytes of UTF-8.
import type { ComponentChild } from "preact";
import type { Evidence } from "../wire";

export function Context({ text, evidence }: { text: string; evidence: Evidence[] }) {
  const bytes = new TextEncoder().encode(text);
  const part = (from: number, to: number) => new TextDecoder().decode(bytes.subarray(from, to));
  const ranges = evidence.map((e, i) => ({ start: e.shown?.start ?? 0, end: e.shown?.end ?? 0, i, rank: e.rank }))
    .filter((s) => s.end > s.start).sort((a, b) => a.start - b.start);
  const parts: ComponentChild[] = [];
  let at = 0;
  for (const s of ranges) {
    if (s.start < at || s.end > bytes.length) continue; // inside one that is shown already
    parts.push(part(at, s.start), <mark class={`e${s.i % 6}`} title={`evidence ${s.rank}`}>{part(s.start, s.end)}</mark>);
    at = s.end;
  }
  parts.push(part(at, bytes.length));
  return <pre dir="auto" tabIndex={0} class="words">{parts}</pre>;
}

// shownText is what the context has of an item, "" where it has nothing.
export const shownText = (context: string, e: Evidence) => (e.shown ?
  new TextDecoder().decode(new TextEncoder().encode(context).subarray(e.shown.start, e.shown.end)) : "");
