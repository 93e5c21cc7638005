import type { ComponentChildren } from "preact";
import { go, type Query } from "../route";

// Link opens a view. What the view is about does not stand in the address.
export const Link = ({ to, about, children }: { to: string; about?: Query; children: ComponentChildren }) => (
  <a href={`#${to}`} onClick={(e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    go(to, about);
  }}>{children}</a>
);
