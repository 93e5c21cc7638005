const classes: Record<string, string> = { ok: "good", ready: "good", committed: "good", pass: "good", applied: "good",
  good: "good", done: "good", serves: "good", lost: "bad", failed: "bad", fail: "bad", down: "bad", error: "bad",
  bad: "bad" };

// State is a word with its colour; the word alone says it, too.
export const State = ({ of, children }: { of: string; children?: string }) => (
  <strong class={`state ${classes[of] ?? "wait"}`}>{children ?? of}</strong>
);
