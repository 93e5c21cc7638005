// The operations of the last hour, at most so many: the slot tells those before the page was opened, too.
import type { Line } from "./wire";

const most = 5000;
let lines: Line[] = [];

// keep adds a line of the stream.
export function keep(line: Line) {
  if (line.kind !== "operation" || line.at <= (lines.at(-1)?.at ?? "")) return; // a stream that is opened again repeats some
  lines.push(line);
  if (lines.length > most + 500) lines = lines.slice(-most);
}

// kept are the lines since a time in milliseconds.
export const kept = (since: number) => lines.filter((l) => Date.parse(l.at) >= since);
