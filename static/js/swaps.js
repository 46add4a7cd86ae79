// Controls when and where htmx inserts responses.
(() => {
  const PRESSED = "a, button, label, summary";
  // On touch screens the click event follows shortly after the finger is lifted.
  const CLICK_WITHIN_MS = 300;
  // The longest time to delay a response, even if the press never ends.
  const LONGEST_MS = 2000;
  const waiting = [];
  let pressed = false;
  let ending = 0;

  // Another update may have replaced the part since the request.
  const take = (request, onload) => {
    const { elt, target } = request;
    if (elt.isConnected && !target.isConnected) request.target = document.getElementById(target.id) ?? target;
    onload();
  };
  // Responses wait while a button or link is pressed, until its click. A response could replace or move the pressed
  // element, and the browser would then send no click.
  document.addEventListener("htmx:beforeSend", ({ detail: request }) => {
    const { xhr } = request;
    const arrived = take.bind(null, request, xhr.onload);
    xhr.onload = () => (pressed ? waiting.push(arrived) : arrived());
  });
  const end = () => {
    pressed = false;
    // Separately, so that an error in one does not stop the others.
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
  // The success message of an action becomes outdated once a live part shows newer content. It is removed after a
  // time to read it. A refusal stays.
  const READ_WITHIN_MS = 6000;
  const came = performance.now();
  let outdated = 0;
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (outdated || !target.matches?.("[data-live], [data-live] *")) return;
    const leave = () => document.querySelectorAll(".ll-messages .ll-note-success").forEach((each) => each.remove());
    outdated = setTimeout(leave, Math.max(0, came + READ_WITHIN_MS - performance.now()));
  });
})();
