// Which view is open. The address names the view and nothing else: what a view is about, such as a person's id, stays in
// this module's memory, and the browser's history has a number for it.

export type Query = Record<string, string | undefined>;

const about: Query[] = [{}];
const listeners = new Set<() => void>();

// here is the open view, with what it is about.
export function here(): { view: string; about: Query } {
  const n = (history.state as { about?: number } | null)?.about ?? 0;
  return { view: location.hash.slice(1), about: about[n] ?? {} };
}

// go opens a view.
export function go(view: string, query: Query = {}) {
  about.push(query);
  history.pushState({ about: about.length - 1 }, "", `#${view}`);
  for (const l of listeners) l();
}

// onRoute calls listen when another view is opened. It returns what ends that.
export function onRoute(listen: () => void): () => void {
  const changed = () => { if (location.hash !== "#main") listen(); }; // #main is the skip link
  listeners.add(listen);
  addEventListener("popstate", changed);
  return () => {
    listeners.delete(listen);
    removeEventListener("popstate", changed);
  };
}
