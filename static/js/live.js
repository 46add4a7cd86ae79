// One stream of server-sent events for the page. Each event names a changed topic, and the parts about that topic
// request an update. While the stream is open, the parts hardly poll. Without a stream (no live process, or a proxy
// that buffers) they poll as their hx-trigger says. A hidden tab waits until it is visible.
(() => {
  const url = document.currentScript.dataset.url;
  const REFRESH_ANYWAY_MS = 30000;
  const SILENT_MS = 40000; // the server sends an event every 15 s
  // A random delay of up to the same length is added, so that not all pages reconnect together:
  const DROPPED_MS = 1000;
  const REFUSED_MS = 30000;
  // By the id of the part, because each update replaces the element:
  const requested = new Map(); // time of the request
  const shown = new Map(); // the content is at least as new as this time
  const settling = new Set(); // received, not settled yet
  const stale = new Set(); // changed during the request
  let source = null;
  let open = false;
  let following = "";
  let silence = 0;
  let again = 0;

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const about = (part) => part.dataset.live.split(" ");
  const pageRequested = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.requestStart ?? 0);
  const age = (part) => Date.now() - (shown.get(part.id) ?? pageRequested);
  const refresh = (part) => {
    const onItsWay = Date.now() - (requested.get(part.id) ?? 0) < REFRESH_ANYWAY_MS;
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
  const received = () => {
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
    source.addEventListener("following", received);
    source.addEventListener("beat", received);
    source.addEventListener("changed", ({ data }) => {
      received();
      parts().filter((part) => about(part).includes(data)).forEach(refresh);
    });
    // Reconnect here instead of in EventSource: age_ms in its address would be outdated.
    source.addEventListener("error", () => closeFor(open ? DROPPED_MS : REFUSED_MS));
  };

  const done = (id) => {
    requested.delete(id);
    const part = document.getElementById(id);
    if (stale.delete(id) && part) refresh(part);
  };
  const ofPart = (event) => event.detail.elt.matches("[data-live]");
  const isWrittenIn = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  document.addEventListener("htmx:configRequest", (event) => {
    // Polls of a settled line only check for a change of status. After a known change, request the whole part.
    if (ofPart(event) && (open || event.detail.triggeringEvent)) event.detail.headers["X-Whole"] = "1";
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!ofPart(event)) return;
    const part = event.detail.elt;
    // Polls have no triggering event.
    const needless = !event.detail.requestConfig.triggeringEvent && open && age(part) < REFRESH_ANYWAY_MS;
    if (needless || document.hidden || isWrittenIn(part)) event.preventDefault();
    else requested.set(part.id, Date.now());
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    // htmx sends the event to an element that still exists; requestConfig names the requesting element.
    const { successful, requestConfig: { elt: part } } = event.detail;
    if (!requested.has(part.id)) return;
    if (successful) shown.set(part.id, requested.get(part.id));
    // htmx sends no events to the replacement before it has settled.
    if (part.isConnected) done(part.id);
    else settling.add(part.id);
  });

  // Keep unfolded sections open.
  const unfolded = (part) => [...part.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent.trim());
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const part = detail.target;
    if (!part.matches("[data-live]")) return;
    // A request that the part itself sent meanwhile gets no further event.
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
    if (!document.hidden) parts().forEach(refresh);
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    follow();
    parts().forEach(refresh);
  });
  follow();
})();
