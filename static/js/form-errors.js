// Opens a refused form at its first error: unfolds the sections around the field and gives it the focus. An order
// form lists its errors in a summary, which has the focus itself.
(() => {
  const wrong = document.querySelector("#error-summary") ??
    document.querySelector('main [aria-invalid="true"]') ??
    [...document.querySelectorAll("[data-form-error], main .ll-error")].find((error) => error.textContent.trim());
  if (!wrong) return;
  for (let fold = wrong.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (!wrong.matches("input, select, textarea, [tabindex]")) wrong.tabIndex = -1;
  wrong.focus({ preventScroll: true });
  // A summary that is taller than the window starts at its first error. The browser may still animate its own
  // scrolling to a field with autofocus; an instant change ends it.
  const show = () => {
    wrong.scrollIntoView({ block: wrong.offsetHeight < innerHeight ? "center" : "start", behavior: "instant" });
  };
  show();
  // Parts of the page that load later move the field down. Keep it visible until the reader scrolls or types.
  const resizes = new ResizeObserver(show);
  resizes.observe(document.querySelector("main"));
  for (const action of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(action, () => resizes.disconnect(), { once: true, passive: true });
  }
})();
