import { Empty } from "./Empty";

// Nothing says that the slot has nobody yet, and what to do about it.
export const Nothing = () => (
  <Empty>
    <p><strong>This slot has no scope yet: nothing was recorded.</strong></p>
    <p>Record a turn with <code>POST /v1/events</code>, or bring a conversation:</p>
    <pre tabIndex={0}>memhost record chat.jsonl</pre>
    <p>To look around first, <code>memhost demo</code> serves an example conversation. The page shows what comes without a
      reload.</p>
  </Empty>
);
