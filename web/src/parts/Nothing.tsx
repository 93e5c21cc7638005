import { Empty } from "./Empty";

// Nothing says that the slot has nobody yet, and what to do about it.
export const Nothing = () => (
  <Empty>
    <p><strong>This slot has no scope yet: nothing was recorded.</strong></p>
    <p>An agent records as it talks. <a href="#people">People</a> takes a conversation that you have as a file, and offers an
      example.</p>
  </Empty>
);
