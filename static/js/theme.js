// Light or dark theme: the reader's choice, else the system's preference. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const KEY = "longline-theme";

  const chosen = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // if storage is forbidden, the system's preference applies
    }
  };
  const show = () => {
    root.dataset.bsTheme = chosen() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new CustomEvent("longline:theme"));
  };

  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    const toggle = document.getElementById("theme-toggle");
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const next = root.dataset.bsTheme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // shown, but not stored
      }
      root.dataset.bsTheme = next;
      document.dispatchEvent(new CustomEvent("longline:theme"));
    });
  });
})();
