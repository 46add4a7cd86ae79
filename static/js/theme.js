// The storage of the browser ("localStorage") or of this tab ("sessionStorage"), for all scripts. If the browser
// forbids it, nothing is kept.
const stored = {
  get: (area, key) => {
    try {
      return window[area].getItem(key);
    } catch {
      return null;
    }
  },
  // The value that was stored as JSON; null if there is none, or if it cannot be read.
  parsed: (area, key) => {
    try {
      return JSON.parse(window[area].getItem(key));
    } catch {
      return null;
    }
  },
  set: (area, key, value) => {
    try {
      if (value === null) window[area].removeItem(key);
      else window[area].setItem(key, value);
    } catch {
      // forbidden
    }
  },
};
// Light or dark theme: the reader's choice, else the system's preference. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const KEY = "longline-theme";

  const show = () => {
    root.dataset.bsTheme = stored.get("localStorage", KEY) ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new CustomEvent("longline:theme"));
  };

  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    const toggle = document.getElementById("theme-toggle");
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const next = root.dataset.bsTheme === "dark" ? "light" : "dark";
      stored.set("localStorage", KEY, next);
      root.dataset.bsTheme = next;
      document.dispatchEvent(new CustomEvent("longline:theme"));
    });
  });
})();
