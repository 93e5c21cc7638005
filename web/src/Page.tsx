// Page is the frame: who may see it, which view is open, whether the slot is there.
import type { FunctionComponent } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { enter, follow, get, Problem } from "./api";
import { Confirm } from "./parts/Confirm";
import { Failure } from "./parts/Failure";
import { zone } from "./parts/Time";
import { keep } from "./kept";
import { here, onRoute, type Query } from "./route";
import { SlotContext, type Slot } from "./slot";
import type { Line, Manifest, Settings } from "./wire";
import { Ask } from "./views/Ask";
import { Change } from "./views/Change";
import { Live } from "./views/Live";
import { Modules } from "./views/Modules";
import { declares, Provider } from "./views/Provider";
import { People } from "./views/People";
import { Runs } from "./views/Runs";
import { Side } from "./views/Side";
import { Token } from "./views/Token";
import { Turns } from "./views/Turns";

interface View {
  id: string;
  title: string;
  part: string; // the view under which it stands
  Is: FunctionComponent<{ about: Query }>;
  stays?: boolean; // it is not drawn anew when it is about something else
  needs?: string; // it is there only where the settings name this
}

const views: View[] = [
  { id: "people", title: "People", part: "people", Is: People, stays: true },
  { id: "turns", title: "Turns", part: "people", Is: Turns },
  { id: "ask", title: "Ask", part: "ask", Is: Ask },
  { id: "side", title: "Side by side", part: "ask", Is: Side, needs: "shadows" },
  { id: "live", title: "Live", part: "live", Is: Live },
  { id: "change", title: "Change", part: "change", Is: Change },
  { id: "provider", title: "Provider", part: "change", Is: Provider, needs: "provider" },
  { id: "modules", title: "Modules", part: "change", Is: Modules },
  { id: "runs", title: "Runs", part: "runs", Is: Runs, needs: "runs" },
];

// Mark is the icon of the page.
const Mark = () => <svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 3h12v10H2zm2 2v2h8V5zm0 4v2h5V9z" /></svg>;

type Link = { word: string; good: boolean };

export function Page() {
  const [settings, setSettings] = useState<Settings | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const [inside, setInside] = useState(false);
  const begin = async () => {
    try {
      const s = await enter();
      setSettings(s);
      if (s.token) await get("/v1/mode");
      setInside(true);
    } catch (e) {
      if (e instanceof Problem && e.status === 401) {
        setSettings(await get<Settings>("settings").catch(() => ({ mode: "read", token: true, views: [] })));
      }
      setRefused(e);
    }
  };
  useEffect(() => { void begin(); }, []);
  if (inside && settings) return <Open settings={settings} />;
  return (
    <>
      <header><h1><Mark />memhost</h1></header>
      <main id="main" tabIndex={-1}>
        {refused instanceof Problem && refused.status === 401 ? <Token first={refused} enter={() => setInside(true)} /> :
          refused ? <Failure of={refused} /> : null}
      </main>
    </>
  );
}

// Open is the page once the slot lets it in.
function Open({ settings }: { settings: Settings }) {
  const [route, setRoute] = useState(here);
  const [more, setMore] = useState<string[]>([]);
  const [link, setLink] = useState<Link>({ word: "", good: true });
  const [times, setTimes] = useState(0); // how often the view was shown anew
  const [blurred, blur] = useState(false);
  const listeners = useRef(new Set<(line: Line) => void>());
  const away = useRef(false);
  const main = useRef<HTMLElement>(null);
  const slot: Slot = useMemo(() => ({ settings: { ...settings, views: [...settings.views, ...more] },
    again: () => setTimes((n) => n + 1),
    onLine: (listen) => {
      listeners.current.add(listen);
      return () => listeners.current.delete(listen);
    } }), [settings, more]);
  const offered = views.filter((v) => !v.needs || slot.settings.views.includes(v.needs));
  const view = offered.find((v) => v.id === route.view) ?? offered[0];
  const parts = offered.filter((v) => v.id === v.part || v.part === "runs");
  const beside = offered.filter((v) => v.part === view.part);

  useEffect(() => onRoute(() => {
    setRoute(here());
    main.current?.focus();
  }), []);
  useEffect(() => { document.title = `${view.title} - memhost`; }, [view]);
  useEffect(() => {
    void follow(keep, (line) => { keep(line); for (const l of listeners.current) l(line); }, (there, e) => {
      const status = e instanceof Problem ? e.status : 0;
      setLink({ good: there, word: there ? "live" : status === 501 ? "this slot has no live stream" :
        status === 401 ? "the session ended: open the page with a new link of memhost run" :
          "the slot is away, trying again" });
      if (there && away.current) slot.again(); // what was shown may be old
      away.current = !there;
    });
    // The views that depend on what serves, which the slot's manifest tells.
    void get<Manifest>("/v1/manifest").then(({ followers, capabilities }) => {
      setMore([...(followers?.some((f) => f.role === "shadow") ? ["shadows"] : []),
        ...(declares(capabilities, settings.mode) ? ["provider"] : [])]);
    }, () => undefined);
  }, []);

  const tab = (v: View, current: boolean) => (
    <li><a href={`#${v.id}`} aria-current={current ? "page" : undefined}>{v.title}</a></li>
  );
  return (
    <SlotContext.Provider value={slot}>
      <a class="skip" href="#main">Skip to the view</a>
      <header>
        <h1><Mark />memhost</h1>
        <nav aria-label="Views"><ul id="views">{parts.map((v) => tab(v, v.part === view.part))}</ul></nav>
        <div class="tools">
          {settings.mode === "on" ? null : <span class="badge" title="This page was started to read only.">reading only</span>}
          <span class="quiet" title="All times are shown in this time zone.">{zone}</span>
          <button type="button" class="plain" aria-pressed={blurred} title="Hides what people said, for sharing a screen"
            onClick={() => blur(!blurred)}>Blur</button>
          <p id="link" role="status" class={link.good ? "good" : "bad"}>{link.word}</p>
        </div>
      </header>
      {/* busy from the start: what loads the view ends it */}
      <main id="main" ref={main} tabIndex={-1} aria-busy="true" class={`${blurred ? "blurred " : ""}${link.good ? "" : "stale"}`}>
        {beside.length > 1 ? <nav aria-label={`Within ${parts.find((p) => p.part === view.part)?.title}`} class="within">
          <ul>{beside.map((v) => tab(v, v === view))}</ul></nav> : null}
        <view.Is key={`${view.id} ${times} ${view.stays ? "" : JSON.stringify(route.about)}`} about={route.about} />
      </main>
      <Confirm />
    </SlotContext.Provider>
  );
}
