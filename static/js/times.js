// Sends the reader's time zone to the server, which writes moments in it. On a page from before the server knew the
// zone, this script rewrites the moments, also in parts that htmx loads later.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const year = 366 * 24 * 3600;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `longline_zone=${zone}; path=/; max-age=${year}; samesite=lax${secure}`;
  const text = new Intl.DateTimeFormat("sv-SE", {
    year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  });
  const isKnown = document.documentElement.dataset.zone === zone;
  const localize = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.getAttribute("datetime"));
      time.title = at.toISOString();
      if (!isKnown) time.textContent = text.format(at);
    }
    for (const place of root.querySelectorAll("[data-zone-name]")) place.textContent = `(${zone})`;
  };
  localize(document);
  document.addEventListener("htmx:load", (event) => localize(event.detail.elt.parentElement ?? document));
})();
