// Filling is how far the filling of another provider is.
import { useEffect } from "preact/hooks";
import { get, post } from "../api";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { Loaded, useLoad } from "../parts/Loaded";
import { State } from "../parts/State";
import { Words } from "../parts/Words";
import type { Backfill } from "../wire";

const every = 2000;

export function Filling() {
  const [got, again] = useLoad(() => get<Backfill>("/v1/backfill").catch(() => null), []);
  const [said, start] = useDoing();
  const moving = got && "data" in got && got.data && /^(filling|waiting|read_only|not_ready|ready)$/.test(got.data.state);
  useEffect(() => {
    if (!moving) return undefined;
    const timer = setInterval(() => void again(), every);
    return () => clearInterval(timer);
  }, [moving]);
  const stop = async () => {
    if (!await confirm("Stop the filling?", "What it filled is kept, and starting it again continues it.", "Stop it")) return;
    await start("stopping", async () => {
      await post("/v1/backfill/stop", {});
      await again();
      return <p>Stopped.</p>;
    });
  };
  const turn = () => start("asking", async () => {
    const b = await post<Backfill>("/v1/backfill/serve", {});
    await again();
    return <p>{b.state}</p>;
  });
  return <Loaded got={got}>{(b) => (!b || b.state === "none" ? null : (
    <section class="card">
      <h3>Filling <Words>{b.provider}</Words></h3>
      <progress max={Math.max(1, b.progress.events)} value={b.progress.done} aria-label="events filled" />
      <Facts of={[["state", <State of={b.state} />], ["events", `${b.progress.done} of ${b.progress.events}`],
        ["open", b.progress.open || ""], ["left out", b.progress.left_out || ""], ["per second", Math.round(b.progress.per_second)],
        ["still takes", b.progress.remaining_ms === undefined ? "" : `${Math.round(b.progress.remaining_ms / 1000)} s`],
        ["error", b.progress.error?.message]]} />
      <p class="buttons">
        {b.state === "asks" ? <button type="button" class="act" onClick={turn}>Let it serve</button> : null}
        {b.state === "serves" || b.state === "stopped" ? null : <button type="button" onClick={stop}>Stop</button>}
      </p>
      {said}
    </section>
  ))}</Loaded>;
}
