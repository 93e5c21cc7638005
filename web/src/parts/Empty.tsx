import type { ComponentChildren } from "preact";

// Empty says why there is nothing, and what to do.
export const Empty = ({ children }: { children: ComponentChildren }) => <div class="empty">{children}</div>;
