import { Words } from "./Words";

// Failure shows what the slot answered in place of an answer.
export function Failure({ of }: { of: unknown }) {
  const e = of as { message?: string; hint?: string; code?: string };
  return (
    <div role="alert" class="failure">
      <p><Words>{e.message ?? of}</Words></p>
      {e.hint ? <p><Words>{e.hint}</Words></p> : null}
      {e.code ? <small>code <Words>{e.code}</Words></small> : null}
    </div>
  );
}
