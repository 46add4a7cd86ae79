// Rewrites moments from UTC to the reader's own time zone, also in what htmx brings later.
(() => {
  const text = new Intl.DateTimeFormat("sv-SE", {
    year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  });
  const localize = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      time.title = `${time.getAttribute("datetime")}`;
      time.textContent = text.format(new Date(time.getAttribute("datetime")));
    }
  };
  localize(document);
  document.addEventListener("htmx:load", (event) => localize(event.detail.elt.parentElement ?? document));
})();
