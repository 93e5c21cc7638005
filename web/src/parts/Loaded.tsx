import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Failure } from "./Failure";

type Got<A> = { data: A } | { error: unknown } | undefined;

let open = 0; // how many are being loaded

function begin() {
  open++;
  document.getElementById("main")?.setAttribute("aria-busy", "true");
}

function end() {
  open--;
  setTimeout(() => { // after what was loaded is drawn
    if (open > 0) return;
    document.getElementById("main")?.removeAttribute("aria-busy");
    performance.mark("shown"); // for whoever measures
  });
}

// useLoad asks the slot once, and again when a key changes. A later question's answer is what counts.
export function useLoad<A>(load: () => Promise<A>, keys: unknown[]): [Got<A>, again: () => Promise<void>] {
  const [got, set] = useState<Got<A>>(undefined);
  const turn = useRef(0);
  const ask = async () => {
    const mine = ++turn.current;
    begin();
    try {
      const data = await load();
      if (mine === turn.current) set({ data });
    } catch (error) {
      if (mine === turn.current) set({ error });
    } finally {
      end();
    }
  };
  useLayoutEffect(() => { // before the view is seen for the first time, so that nobody takes it for complete
    void ask();
    return () => { turn.current++; };
  }, keys);
  return [got, ask];
}

// Loaded shows what a question to the slot has given, why it has not, or that it is under way.
export function Loaded<A>({ got, children }: { got: Got<A>; children: (data: A) => ComponentChildren }) {
  if (got === undefined) return <div class="skeleton" aria-hidden="true"><i /><i /><i /></div>;
  return <>{"error" in got ? <Failure of={got.error} /> : children(got.data)}</>;
}
