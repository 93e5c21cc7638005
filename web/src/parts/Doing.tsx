import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Failure } from "./Failure";

// useDoing is a place that shows what came of what a person asked for, and what starts it.
export function useDoing(): [place: ComponentChildren, start: (meanwhile: string,
  make: () => Promise<ComponentChildren>) => Promise<void>, clear: () => void] {
  const [shown, show] = useState<ComponentChildren>(null);
  const place = useRef<HTMLDivElement>(null);
  const turn = useRef(0);
  const start = async (meanwhile: string, make: () => Promise<ComponentChildren>) => {
    const mine = ++turn.current;
    show(<p class="quiet">{meanwhile}</p>);
    let came: ComponentChildren;
    try {
      came = await make();
    } catch (e) {
      came = <Failure of={e} />;
    }
    if (mine !== turn.current) return; // something later was asked for
    show(came);
    setTimeout(() => { // what stands below the window is moved into it, by its beginning
      if ((place.current?.getBoundingClientRect().top ?? 0) > 0.8 * innerHeight) place.current?.scrollIntoView();
    });
  };
  return [<div role="status" ref={place}>{shown}</div>, start, () => { turn.current++; show(null); }];
}
