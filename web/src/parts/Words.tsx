import { marked, type Search } from "../search";

// Words is text that came from a user, memory or a backend: its direction is its own, and "blur" hides it. What a search
// found in it is marked.
export function Words({ children, search }: { children: unknown; search?: Search }) {
  const text = String(children ?? "");
  return <bdi dir="auto" class="words">{search && search.words.length > 0 ?
    marked(search, text).map((piece, i) => (i % 2 === 1 ? <mark class="hit">{piece}</mark> : piece)) : text}</bdi>;
}
