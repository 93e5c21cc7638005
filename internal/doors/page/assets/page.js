// The page's frame: who may see it, which view is open, whether the slot is there.
import { el, problem } from "./dom.js";
import { enter, follow, get, useToken } from "./api.js";
import { now } from "./now.js";
import { ask } from "./ask.js";
import { turns } from "./turns.js";
import { modules } from "./modules.js";
import { runs } from "./runs.js";
import { side } from "./side.js";
import { declares, native } from "./native.js";

// A view with a fourth part is there only where the settings name it.
const views = [["now", "Now", now], ["ask", "Ask", ask], ["turns", "Turns", turns],
  ["side", "Side by side", side, "shadows"], ["runs", "Runs", runs, "runs"],
  ["provider", "Provider", native, "provider"], ["modules", "Modules", modules]];
const offered = () => views.filter(([, , , needs]) => !needs || slot.settings.views.includes(needs));
const main = document.getElementById("main");
const link = document.getElementById("link");

// slot is what the views share: settings, where each line of the stream of operations goes, and how a view is
// shown again.
const slot = { settings: { mode: "read", views: [] }, onLine: null, away: false, again: () =>
  open(main.contains(document.activeElement)) };
let opened = 0;
let moves = false; // whether the focus goes to the view that is being opened
let current = "";

async function open(focus) {
  const [name, query] = location.hash.slice(1).split("?");
  const [id, title, view] = offered().find(([id]) => id === name) ?? views[0];
  current = id;
  nameViews(id);
  document.title = `${title} - memhost`;
  slot.onLine = null;
  const turn = ++opened;
  moves ||= focus;
  const place = el("div");
  main.replaceChildren(place);
  main.setAttribute("aria-busy", "true");
  try {
    const onLine = await view(place, slot, new URLSearchParams(query ?? ""));
    if (turn === opened) slot.onLine = onLine ?? null;
  } catch (e) {
    place.append(problem(e));
  }
  if (turn !== opened) return; // another view was opened in the meantime
  main.removeAttribute("aria-busy");
  performance.mark("shown"); // for whoever measures
  if (moves) main.focus();
  moves = false;
}

function connected(there, e) {
  const was = slot.away;
  slot.away = !there;
  link.textContent = there ? "live" : e?.status === 501 ? "this slot has no live stream" :
    e?.status === 401 ? "the session ended: open the page with a new link of memhost run" :
      "the slot is away, trying again";
  link.className = there ? "good" : "bad";
  if (there && was) open(false); // what was shown may be old
}

// nameViews lists the views that there are, in place where the list is the same.
function nameViews(current) {
  const list = document.getElementById("views");
  if (list.children.length !== offered().length) {
    list.replaceChildren(...offered().map(([id, title]) => el("li", {}, el("a", { href: `#${id}` }, title))));
  }
  for (const a of list.querySelectorAll("a")) {
    if (a.hash === `#${current}`) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
}

// begin opens the page once the slot lets it in.
function begin() {
  addEventListener("hashchange", () => { if (location.hash !== "#main") open(true); }); // #main is the skip link
  open(false).then(offerMore);
  follow((line) => slot.onLine?.(line), connected);
}

// offerMore offers the views that depend on what serves, which the slot's manifest tells: of its shadows, and of what the
// provider's module declares.
async function offerMore() {
  const { followers, capabilities } = await get("/v1/manifest").catch(() => ({}));
  const more = [];
  if (followers?.some((f) => f.role === "shadow")) more.push(["shadows", "side"]);
  if (capabilities && declares(capabilities, slot.settings.mode)) more.push(["provider", "provider"]);
  if (more.length === 0) return;
  slot.settings.views.push(...more.map(([needs]) => needs));
  if (more.some(([, view]) => location.hash.slice(1).split("?")[0] === view)) open(false);
  else nameViews(current);
}

// askToken lets a person in who has the slot's token and no link.
function askToken(e) {
  const input = el("input", { type: "password", autocomplete: "off", required: true });
  const said = el("div", { role: "alert" }, e ? problem(e) : null);
  main.replaceChildren(el("h2", {}, "This slot wants a token"),
    el("p", {},
      "Open the page with the link that memhost run printed, which works once; or give the slot's token " +
      "(MEMHOST_TOKEN). It is kept in this page only."),
    el("form", { onsubmit: async (event) => {
      event.preventDefault();
      useToken(input.value);
      try {
        await get("/v1/mode");
        begin();
      } catch (wrong) {
        said.replaceChildren(problem(wrong));
      }
    } }, el("label", {}, "Token", input), el("button", {}, "Open")), said);
}

try {
  slot.settings = await enter();
  if (slot.settings.token) await get("/v1/mode");
  begin();
} catch (e) {
  if (e.status === 401) {
    slot.settings = await get("settings").catch(() => slot.settings);
    askToken(e);
  } else {
    main.replaceChildren(problem(e));
  }
}
