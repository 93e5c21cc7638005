// Answered is a provider's answer in the form that the module declares; one of another form is JSON.
import { Json } from "../parts/Json";
import { Table } from "../parts/Table";
import { Words } from "../parts/Words";
import type { ShowDecl } from "../wire";

// at is the value at a JSON Pointer.
const at = (v: unknown, pointer?: string): unknown => (pointer ?? "").split("/").slice(1).reduce((o, k) =>
  (o !== null && typeof o === "object" ? (o as Record<string, unknown>)[k.replaceAll("~1", "/").replaceAll("~0", "~")] :
    undefined), v);

const plain = (v: unknown) => (v === undefined || v === null || v === false ? "" : v === true ? "*" :
  typeof v === "object" ? JSON.stringify(v) : String(v));

const cut = (text: string, n?: number) => (n ? [...text].slice(0, n).join("") : text);

export function Answered({ show, of }: { show?: ShowDecl; of: unknown }) {
  const part = show ? at(of, show.at) : undefined;
  if (show?.as === "text" && typeof part === "string") return <pre dir="auto" tabIndex={0} class="words">{part}</pre>;
  const rows = Array.isArray(part) ? part : part !== null && typeof part === "object" ? [part] : undefined;
  if (show?.as !== "table" || !rows) return <Json of={of} />;
  if (rows.length === 0) return <p>There is nothing.</p>;
  const under = show.below ?? [];
  const below = (row: unknown) => under.flatMap((p) => [at(row, p)].flat())
    .map((v) => plain((v as { text?: unknown } | undefined)?.text ?? v)).filter(Boolean).join("\n");
  const next = show.next ? at(of, show.next) : undefined;
  return (
    <>
      <Table caption="Answer" heads={[...(show.columns ?? []).map((c) => c.title), ...(under.length > 0 ? [""] : [])]}
        rows={rows.map((row) => [...(show.columns ?? []).map((c) => cut(plain(at(row, c.at)), c.cut)),
          ...(under.length > 0 ? [<pre dir="auto" class="words">{below(row)}</pre>] : [])])} />
      {next ? <p>There is more: after <Words>{next}</Words></p> : null}
    </>
  );
}
