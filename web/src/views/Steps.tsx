import { State } from "../parts/State";
import { Words } from "../parts/Words";
import type { Step } from "../wire";

// Steps are those of a start or a swap.
export const Steps = ({ of }: { of: Step[] }) => (
  <ol class="steps">{of.map((s) => <li key={`${s.name} ${s.ms}`}><State of={s.verdict} /> <Words>{s.name}</Words>{` ${s.ms} ms `}
    {s.detail ? <small><Words>{s.detail}</Words></small> : null}</li>)}</ol>
);
