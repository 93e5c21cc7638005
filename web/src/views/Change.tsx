// Change: the read-only mode, another provider, and how far its filling is.
import { get, call } from "../api";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Empty } from "../parts/Empty";
import { Loaded, useLoad } from "../parts/Loaded";
import { useSlot } from "../slot";
import type { Manifest, Mode, ModuleList } from "../wire";
import { Filling } from "./Filling";
import { Swap } from "./Swap";

export function Change() {
  const slot = useSlot();
  const [got] = useLoad(() => Promise.all([get<Manifest>("/v1/manifest"), get<Mode>("/v1/mode"),
    get<ModuleList>("/v1/modules").catch(() => ({ modules: [] }))]), []);
  return (
    <>
      <h2>Change</h2>
      <Loaded got={got}>{([manifest, mode, { modules }]) => (slot.settings.mode !== "on" ?
        <Empty><p>This page was started to read only: it offers no changes.</p>
          <p><code>server.page: on</code> offers them.</p></Empty> : (
          <>
            <Wall mode={mode} />
            <Swap manifest={manifest} modules={modules ?? []} />
            <Filling />
          </>
        ))}</Loaded>
    </>
  );
}

// Wall raises and lowers the read-only mode.
function Wall({ mode }: { mode: Mode }) {
  const slot = useSlot();
  const [said, start] = useDoing();
  const raise = !mode.read_only;
  const change = async () => {
    if (!await confirm(raise ? "Make the slot read-only?" : "Make the slot writable?", raise ?
      "Events are answered with skipped_read_only and are not kept until the slot is writable again." :
      "Events reach the provider again.", raise ? "Make it read-only" : "Make it writable")) return;
    await start("working", async () => {
      const m = await call<Mode>("PUT", "/v1/mode", { read_only: raise, reason: raise ? "from the page" : "" });
      return <><p>{m.read_only ? "The slot is read-only." : "The slot is writable."}</p>
        <button type="button" onClick={slot.again}>Show what holds now</button></>;
    });
  };
  return (
    <section class="card mode">
      <h3>{mode.read_only ? "The slot is read-only" : "The slot is writable"}</h3>
      <p class="quiet grow">{mode.read_only ? "Questions are answered, and nothing is kept until it is writable again." :
        "Every turn reaches the provider. Read-only keeps the memory as it is."}</p>
      <p><button type="button" onClick={change}>{raise ? "Make read-only" : "Make writable"}</button></p>
      {said}
    </section>
  );
}
