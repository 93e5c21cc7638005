// Import brings a conversation that somebody exported: the slot says what the file holds, and records it when asked to.
import { useEffect, useState } from "preact/hooks";
import { at, get, post, send } from "../api";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { Failure } from "../parts/Failure";
import { Words } from "../parts/Words";
import { nameOf } from "../ask";
import { useSlot } from "../slot";
import type { ImportCheck, ImportProgress } from "../wire";

const largest = 256 << 20; // bytes
const every = 500;

export function Import({ first, started, done }: { first: boolean; started: () => void; done: () => void }) {
  const { settings } = useSlot();
  const [check, setCheck] = useState<ImportCheck | null>(null);
  const [over, setOver] = useState(false);
  const [doing, start, clear] = useDoing();
  if (settings.mode !== "on") {
    return first ? <p class="quiet">Nothing was recorded yet. This page reads only: <code>memhost record FILE</code> brings a
      conversation.</p> : null;
  }
  const read = (file: Blob, name: string) => {
    setCheck(null);
    return start(`reading ${name}`, async () => {
      if (file.size > largest) {
        return <p>The file is larger than 256 MiB. This command reads it: <code>memhost record FILE</code></p>;
      }
      setCheck(await send<ImportCheck>("/v1/import", file, /\.zip$/i.test(name) ? "application/zip" : "application/json"));
      return null;
    });
  };
  const example = () => start("reading the example", async () => {
    const response = await fetch(at("demo.jsonl"), { credentials: "omit", cache: "no-store" });
    setCheck(await send<ImportCheck>("/v1/import", await response.blob(), "application/json"));
    return null;
  });
  const dropped = (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    const file = e.dataTransfer?.files[0];
    if (file) void read(file, file.name);
  };
  const form = (
    <>
      <div class={`drop ${over ? "over" : ""}`} onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
        onDrop={dropped}>
        <label>Drop a file here, or choose one
          <input type="file" accept=".json,.jsonl,.zip" onChange={(e) => {
            const file = e.currentTarget.files?.[0];
            if (file) void read(file, file.name);
          }} /></label>
        <p class="quiet">An export of ChatGPT or Claude, a log of Claude Code or Codex, Gemini's activity, or messages with
          times: JSON, JSON Lines or ZIP, at most 256 MiB. Nothing is recorded before you have seen what it holds.</p>
      </div>
      {first ? <p class="buttons"><button type="button" onClick={example}>Try it with the example conversation</button></p> : null}
      {doing}
      {check ? <Found of={check} started={started} done={() => { setCheck(null); clear(); done(); }} /> : null}
    </>
  );
  return first ? <div class="empty"><p><strong>Nothing was recorded yet.</strong> An agent records as it talks; to look
    around first, bring a conversation.</p>{form}</div> :
    <details class="import"><summary>Bring a conversation</summary>{form}</details>;
}

// Found is what a file holds, with whose memory it is to be.
function Found({ of: c, started, done }: { of: ImportCheck; started: () => void; done: () => void }) {
  const [run, setRun] = useState("default");
  const [person, setPerson] = useState("");
  const [progress, setProgress] = useState<ImportProgress | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const moving = progress?.state === "recording";
  useEffect(() => {
    if (!moving) return undefined;
    const timer = setInterval(() => { void get<ImportProgress>("/v1/import").then(setProgress, () => undefined); }, every);
    return () => clearInterval(timer);
  }, [moving]);
  const record = async (e: Event) => {
    e.preventDefault();
    setFailed(null);
    started();
    try {
      setProgress(await post<ImportProgress>("/v1/import/confirm", { confirmation: c.confirmation,
        ...(c.needs_scope ? { scope: { run_id: run, persona_id: person } } : {}) }));
    } catch (problem) {
      setFailed(problem);
    }
  };
  if (progress) return <Recorded of={progress} done={done} />;
  return (
    <form class="card" onSubmit={record} aria-label="What the file holds">
      <h3>{c.confirmation ? `This is ${c.title}` : "Nothing in it can be recorded"}</h3>
      <Facts of={[["conversations", c.conversations || ""], ["turns", c.events], ["messages", c.messages],
        ["from", c.first?.slice(0, 10)], ["to", c.last?.slice(0, 10)],
        ["for", c.scopes.map(nameOf).join(", ") + (c.needs_scope && c.scopes.length > 0 ? ", and whom you name" : "")],
        ["left out", c.left_out.join(", ")], ["cannot be read", c.cannot_be_read || ""]]} />
      {c.problems.length > 0 ? <ul>{c.problems.map((p) => <li key={p}><Words>{p}</Words></li>)}</ul> : null}
      {c.needs_scope && c.confirmation ? (
        <p class="fields">
          <label>Person<input required value={person} onInput={(e) => setPerson(e.currentTarget.value)} /></label>
          <label>Run<input required value={run} onInput={(e) => setRun(e.currentTarget.value)} /></label>
        </p>) : null}
      {c.confirmation ? <p class="buttons"><button type="submit" class="act">{`Record ${c.events} ${c.events === 1 ? "turn" : "turns"}`}</button></p> : null}
      {failed ? <Failure of={failed} /> : null}
    </form>
  );
}

function Recorded({ of: p, done }: { of: ImportProgress; done: () => void }) {
  const tried = p.recorded + p.known + p.not_kept + p.failed;
  return (
    <div class="card" role="status">
      <h3>{p.state === "recording" ? "Recording" : p.state === "done" ? "Recorded" : "It stopped"}</h3>
      <progress max={Math.max(1, p.events)} value={tried} aria-label="turns recorded" />
      <Facts of={[["turns", `${tried} of ${p.events}`], ["recorded now", p.recorded], ["were there already", p.known || ""],
        ["not kept by this memory", p.not_kept || ""], ["failed", p.failed || ""]]} />
      {p.error ? <Failure of={p.error} /> : null}
      {p.problems.length > 0 ? <ul>{p.problems.map((t) => <li key={t}><Words>{t}</Words></li>)}</ul> : null}
      {p.state === "recording" ? null : <p class="buttons"><button type="button" class="act" onClick={done}>Show the people</button></p>}
    </div>
  );
}
