const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const dayFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const hourFormat = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

// zone is the time zone in which all times are shown.
export const zone = format.resolvedOptions().timeZone;

// Time is an RFC 3339 time in the reader's time zone; the original is its title. part shows the day or the hour alone.
export function Time({ at, part }: { at?: string; part?: "day" | "hour" }) {
  if (!at) return null;
  const when = new Date(at);
  const text = part === "day" ? dayFormat : part === "hour" ? hourFormat : format;
  return <time dateTime={at} title={at} class="time">{Number.isNaN(when.getTime()) ? at : text.format(when)}</time>;
}

// dayOf is the day of a time as Time shows it.
export const dayOf = (at?: string) => (at && !Number.isNaN(Date.parse(at)) ? dayFormat.format(new Date(at)) : "");

const relative = new Intl.RelativeTimeFormat("en-GB", { numeric: "auto", style: "short" });
const units: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [["minute", 60], ["hour", 3600], ["day", 86_400]];

// Ago is a time as how long ago it was, for up to a week; then it is the day.
export function Ago({ at }: { at?: string }) {
  if (!at) return null;
  const seconds = (Date.now() - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds) || seconds < 0 || seconds > 7 * 86_400) return <Time at={at} part="day" />;
  const [unit, size] = units.toReversed().find(([, s]) => seconds >= s) ?? ["second", 1];
  return <time dateTime={at} title={format.format(new Date(at))} class="time">{unit === "second" ? "just now" :
    relative.format(-Math.floor(seconds / size), unit)}</time>;
}
