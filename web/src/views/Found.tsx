// Found is what a question found: the items with their part of the budget, why each was found, and what did not fit.
import { nameOf } from "../ask";
import { Link } from "../parts/Link";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import type { Evidence, Result, Scope } from "../wire";
import { shownText } from "./Context";

const bytesOf = (e: Evidence) => (e.shown ? e.shown.end - e.shown.start : 0);

export function Found({ result, scope }: { result: Result; scope: Scope }) {
  const { evidence, formatted_context: context, trace } = result;
  // An item's tokens are its share of the context's bytes: the slot counts the whole.
  const all = new TextEncoder().encode(context).length || 1;
  const tokens = (e: Evidence) => Math.round(((trace?.token_count ?? 0) * bytesOf(e)) / all);
  const most = Math.max(1, ...evidence.map(tokens));
  const [fits, left] = [evidence.filter((e) => bytesOf(e) > 0), evidence.filter((e) => bytesOf(e) === 0)];
  const item = (e: Evidence) => {
    const i = evidence.indexOf(e);
    return (
      <li class="item">
        <div class="row">
          <mark class={`e${i % 6} rank`}>{String(e.rank)}</mark>
          <span class="grow"><Words>{e.text || shownText(context, e) || e.native_id}</Words></span>
        </div>
        {bytesOf(e) > 0 ? <div class="bar" role="img" aria-label={`about ${tokens(e)} tokens`}>
          <span class={`e${i % 6}`} style={{ inlineSize: `${(100 * tokens(e)) / most}%` }} /></div> : null}
        <p class="quiet">
          {bytesOf(e) > 0 ? `about ${tokens(e)} tokens` : "not in the context"}
          {e.score === undefined ? "" : ` · score ${Number(e.score.toPrecision(4))}`}
          {e.native_type ? <> · <Words>{e.native_type}</Words></> : null}
          {e.valid_at || e.created_at ? <> · <Time at={e.valid_at || e.created_at} /></> : null}
          {(e.source_event_ids ?? []).length > 0 ? " · from " : ""}
          {(e.source_event_ids ?? []).map((id) => [<Link to="people" about={{ scope: nameOf(scope), event: id }}>
            <Words>{id}</Words></Link>, " "])}
        </p>
      </li>
    );
  };
  return (
    <>
      <ol class="items" aria-label="Evidence">{fits.map(item)}</ol>
      {left.length === 0 ? null : <details><summary>{`${left.length} more were found and did not fit`}</summary>
        <ol class="items" aria-label="What did not fit">{left.map(item)}</ol></details>}
    </>
  );
}
