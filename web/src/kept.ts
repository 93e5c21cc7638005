// The operations that ended since the page was opened, at most so many of the last hour: the slot keeps none.
import type { Line } from "./wire";

const most = 5000;
let lines: Line[] = [];

// keep adds a line of the stream.
export function keep(line: Line) {
  if (line.kind !== "operation") return;
  lines.push(line);
  if (lines.length > most + 500) lines = lines.slice(-most);
}

// kept are the lines since a time in milliseconds.
export const kept = (since: number) => lines.filter((l) => Date.parse(l.at) >= since);
