import { State } from "../parts/State";
import { Words } from "../parts/Words";
import type { Step } from "../wire";

// Steps are those of a start or a swap. nth numbers starts and swaps, so that no step is taken for one of the start
// before.
export const Steps = ({ of, nth }: { of: Step[]; nth: number }) => (
  <ol class="steps">{of.map((s, i) => <li key={`${nth} ${i}`}><State of={s.verdict} /> <Words>{s.name}</Words>{` ${s.ms} ms `}
    {s.detail ? <small><Words>{s.detail}</Words></small> : null}</li>)}</ol>
);
