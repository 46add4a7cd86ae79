// When and where answers are put in their place.
(() => {
  const PRESSED = "a, button, label, summary";
  // The click of a finger comes a moment after it has been lifted.
  const CLICK_WITHIN_MS = 300;
  // Whatever became of the press: what arrives is not kept back for longer.
  const LONGEST_MS = 2000;
  const waiting = [];
  let pressed = false;
  let ending = 0;

  // A part may have been replaced since somebody asked for another look of it.
  const take = (asked, onload) => {
    const { elt, target } = asked;
    if (elt.isConnected && !target.isConnected) asked.target = document.getElementById(target.id) ?? target;
    onload();
  };
  // A press counts: from its beginning to its click answers wait, since they may replace the button or the link, or
  // move it away from under the pointer, and then the browser clicks nothing.
  document.addEventListener("htmx:beforeSend", ({ detail: asked }) => {
    const { xhr } = asked;
    const arrived = take.bind(null, asked, xhr.onload);
    xhr.onload = () => (pressed ? waiting.push(arrived) : arrived());
  });
  const end = () => {
    pressed = false;
    // Each by itself: one that fails takes no other with it.
    for (const arrived of waiting.splice(0)) setTimeout(arrived);
  };
  const endIn = (ms) => {
    clearTimeout(ending);
    if (pressed) ending = setTimeout(end, ms);
  };
  window.addEventListener("pointerdown", ({ button, isPrimary, target }) => {
    if (!isPrimary) return;
    pressed = button === 0 && Boolean(target.closest?.(PRESSED));
    endIn(LONGEST_MS);
  });
  window.addEventListener("pointerup", () => endIn(CLICK_WITHIN_MS));
  window.addEventListener("pointercancel", () => endIn(0));
  window.addEventListener("click", () => endIn(0));
  // The message of an action is true when the page comes. Once a live part shows something newer it is outdated, and
  // leaves after it could be read. A refusal stays.
  const READ_WITHIN_MS = 6000;
  const came = performance.now();
  let outdated = 0;
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (outdated || !target.matches?.("[data-live], [data-live] *")) return;
    const leave = () => document.querySelectorAll(".ll-messages .ll-note-success").forEach((each) => each.remove());
    outdated = setTimeout(leave, Math.max(0, came + READ_WITHIN_MS - performance.now()));
  });
})();
