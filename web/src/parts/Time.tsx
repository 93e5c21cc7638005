const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

// zone is the time zone in which all times are shown.
export const zone = format.resolvedOptions().timeZone;

// Time is an RFC 3339 time in the reader's time zone; the original is its title.
export function Time({ at }: { at?: string }) {
  if (!at) return null;
  const when = new Date(at);
  return <time dateTime={at} title={at} class="time">{Number.isNaN(when.getTime()) ? at : format.format(when)}</time>;
}
