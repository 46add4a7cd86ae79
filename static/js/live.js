// One stream of server-sent events for the page: it names what has changed, and the parts of the page that are about
// it look for themselves. While it is open they hardly poll. Without it (no live process, a proxy that keeps what
// comes) they poll as their hx-trigger says; a tab that nobody sees waits until somebody does.
(() => {
  const url = document.currentScript.dataset.url;
  const LOOK_ANYWAY_MS = 30000;
  const SILENT_MS = 40000; // the server says something every 15 s
  // Up to as much again, so that not all pages come at once:
  const DROPPED_MS = 1000;
  const REFUSED_MS = 30000;
  // By the ids of parts, which outlive their elements:
  const asked = new Map(); // when
  const shown = new Map(); // since when what is shown was so, or later
  const settling = new Set(); // came, and are not settled yet
  const stale = new Set(); // changed while it was on its way
  let source = null;
  let open = false;
  let following = "";
  let silence = 0;
  let again = 0;

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const about = (part) => part.dataset.live.split(" ");
  const pageAsked = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.requestStart ?? 0);
  const age = (part) => Date.now() - (shown.get(part.id) ?? pageAsked);
  const look = (part) => {
    const onItsWay = Date.now() - (asked.get(part.id) ?? 0) < LOOK_ANYWAY_MS;
    if (onItsWay) stale.add(part.id);
    else part.dispatchEvent(new CustomEvent("live"));
  };
  const topics = () => (document.hidden || !url ? "" : [...new Set(parts().flatMap(about))].sort().join(" "));

  const close = () => {
    source?.close();
    source = null;
    open = false;
    clearTimeout(silence);
    clearTimeout(again);
  };
  const closeFor = (ms) => {
    close();
    again = setTimeout(follow, ms * (1 + Math.random()));
  };
  const heard = () => {
    open = true;
    clearTimeout(silence);
    silence = setTimeout(() => closeFor(REFUSED_MS), SILENT_MS);
  };
  const follow = () => {
    close();
    following = topics();
    if (!following) return;
    const query = new URLSearchParams(following.split(" ").map((topic) => ["about", topic]));
    query.set("age_ms", Math.max(0, ...parts().map((part) => Math.round(age(part)))));
    source = new EventSource(`${url}?${query}`, { withCredentials: true });
    source.addEventListener("following", heard);
    source.addEventListener("beat", heard);
    source.addEventListener("changed", ({ data }) => {
      heard();
      parts().filter((part) => about(part).includes(data)).forEach(look);
    });
    // By ourselves, since what the page shows is older by then than the address says.
    source.addEventListener("error", () => closeFor(open ? DROPPED_MS : REFUSED_MS));
  };

  const done = (id) => {
    asked.delete(id);
    const part = document.getElementById(id);
    if (stale.delete(id) && part) look(part);
  };
  const ofPart = (event) => event.detail.elt.matches("[data-live]");
  const isWrittenIn = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  document.addEventListener("htmx:configRequest", (event) => {
    // A settled line's polls ask only whether it turned; once something changed, all of it is wanted.
    if (ofPart(event) && (open || event.detail.triggeringEvent)) event.detail.headers["X-Whole"] = "1";
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!ofPart(event)) return;
    const part = event.detail.elt;
    // Polls have no event that triggered them.
    const needless = !event.detail.requestConfig.triggeringEvent && open && age(part) < LOOK_ANYWAY_MS;
    if (needless || document.hidden || isWrittenIn(part)) event.preventDefault();
    else asked.set(part.id, Date.now());
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    // The event is told of an element that is still there; this one asked.
    const { successful, requestConfig: { elt: part } } = event.detail;
    if (!asked.has(part.id)) return;
    if (successful) shown.set(part.id, asked.get(part.id));
    // One that was put in its place hears nothing before htmx has settled it.
    if (part.isConnected) done(part.id);
    else settling.add(part.id);
  });

  // What was unfolded stays so.
  const unfolded = (part) => [...part.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent.trim());
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const part = detail.target;
    if (!part.matches("[data-live]")) return;
    // What the part itself has asked for meanwhile is not heard of any more.
    if (detail.requestConfig.elt !== part) settling.add(part.id);
    const kept = unfolded(part);
    document.addEventListener("htmx:afterSwap", () => {
      for (const summary of document.getElementById(part.id)?.querySelectorAll("details > summary") ?? []) {
        if (kept.includes(summary.textContent.trim())) summary.parentElement.open = true;
      }
    }, { once: true });
  });

  document.addEventListener("htmx:afterSettle", () => {
    for (const id of settling) done(id);
    settling.clear();
    if (topics() !== following) follow();
  });
  document.addEventListener("visibilitychange", () => {
    follow();
    if (!document.hidden) parts().forEach(look);
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    follow();
    parts().forEach(look);
  });
  follow();
})();
