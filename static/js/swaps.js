// When and where answers are put in their place.
(() => {
  const PRESSED = "a, button, label, summary";
  const waiting = [];
  let pressed = false;

  // A part may have been replaced since somebody asked for another look of it.
  const take = (asked, onload) => {
    const { elt, target } = asked;
    if (elt.isConnected && !target.isConnected) asked.target = document.getElementById(target.id) ?? target;
    onload();
  };
  // A press counts: while a button or a link is held down, answers wait, since they may replace it or move it away
  // from under the pointer, and then the browser clicks nothing.
  document.addEventListener("htmx:beforeSend", ({ detail: asked }) => {
    const { xhr } = asked;
    const arrived = take.bind(null, asked, xhr.onload);
    xhr.onload = () => (pressed ? waiting.push(arrived) : arrived());
  });
  const release = () => {
    pressed = false;
    // After the click, which comes next.
    setTimeout(() => waiting.splice(0).forEach((arrived) => arrived()));
  };
  window.addEventListener("pointerdown", ({ button, target }) => {
    pressed = button === 0 && target.closest(PRESSED) !== null;
  });
  window.addEventListener("pointerup", release);
  window.addEventListener("pointercancel", release);
  // It may have come up outside of the window.
  window.addEventListener("pointermove", ({ buttons }) => {
    if (pressed && buttons === 0) release();
  });
})();
