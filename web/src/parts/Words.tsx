// Words is text that came from a user, memory or a backend: its direction is its own, and "blur" hides it.
export const Words = ({ children }: { children: unknown }) => <bdi dir="auto" class="words">{String(children ?? "")}</bdi>;
