// TurnChange forgets one turn, or replaces what was said in it: the corrected turn is recorded, and then the other one is
// forgotten. That takes the turn as the archive has it: what a memory keeps of a turn may lack its scope.
import { useRef, useState } from "preact/hooks";
import { post } from "../api";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { State } from "../parts/State";
import type { ForgetReceipt, ProvenanceItem, WriteReceipt } from "../wire";
import type { Turn } from "./Conversation";

interface Props {
  of: Turn;
  items: ProvenanceItem[]; // what the memory made of it
  scope: object;
  provider: string;
  archive: boolean;
  forgets: boolean; // whether the memory can forget; else only the archive does
  changed: () => void;
}

export function TurnChange({ of: { listed, said }, items, scope, provider, archive, forgets, changed }: Props) {
  const [correcting, correct] = useState(false);
  const [doing, start] = useDoing();
  const form = useRef<HTMLFormElement>(null);
  const corrected = useRef(`${listed.event_id}-${Date.now().toString(36)}`); // the same when it is tried again
  const id = listed.event_id;
  const kept = listed.receipt?.native_ids ?? [];
  const parts = [archive ? "the turn in the archive" : "", !forgets ? "" : items.length > 0 ?
    `${items.length} ${items.length === 1 ? "item" : "items"} that ${provider} made of it` : kept.length > 0 ?
      `what ${provider} kept of it (${kept.slice(0, 5).join(", ")})` : `what ${provider} made of it`].filter(Boolean);
  const goes = `At least this goes: ${parts.join(", and ")}. ${forgets ? "" : `${provider} cannot forget: what it holds stays ` +
    "until the scope is erased. "}` + "Nothing brings it back.";
  const remove = () => post<ForgetReceipt>("/v1/forget", { scope, event_ids: [id], reason: "asked on the page" });
  const told = (r: ForgetReceipt) => <Facts of={[["status", <State of={r.status} />],
    ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain]]} />;
  const forget = async () => {
    if (!await confirm("Forget this turn?", goes, "Forget it")) return;
    await start("forgetting", async () => {
      const receipt = await remove();
      changed();
      return told(receipt);
    });
  };
  const replace = async (e: Event) => {
    e.preventDefault();
    if (!said || !form.current) return;
    const texts = [...form.current.querySelectorAll("textarea")].map((t) => t.value);
    if (!await confirm("Correct this turn?", `${goes} The corrected turn is recorded in its place, at the same time in the same ` +
      "session.", "Correct it")) return;
    await start("correcting", async () => {
      const written = await post<WriteReceipt>("/v1/events", { ...said, event_id: corrected.current,
        messages: said.messages.map((m, i) => ({ ...m, content: texts[i] })) });
      if (written.status !== "committed" && written.status !== "queued") {
        throw new Error(`The corrected turn is ${written.status}: the turn stays as it is.`);
      }
      const receipt = await remove();
      correct(false);
      changed();
      return told(receipt);
    });
  };
  return (
    <>
      <span class="row change">
        {forgets && archive && said ? <button type="button" class="link" aria-label={`Correct ${id}`} aria-expanded={correcting}
          onClick={() => correct(!correcting)}>correct</button> : null}
        <button type="button" class="link bad" aria-label={`Forget ${id}`} onClick={forget}>forget</button>
      </span>
      {correcting && said ? <form ref={form} onSubmit={replace}>
        {said.messages.map((m) => <label class="wide">{m.name || m.role}
          <textarea dir="auto" class="words" required rows={3}>{m.content ?? ""}</textarea></label>)}
        <p class="buttons"><button class="act">Correct it</button>
          <button type="button" onClick={() => correct(false)}>Leave it</button></p>
      </form> : null}
      {doing}
    </>
  );
}
