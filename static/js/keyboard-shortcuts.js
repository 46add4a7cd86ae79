// Keys for every page, except while the user types or a dialog is open: "/" searches, "g" and a letter open a page,
// "?" shows the keys. Ctrl-K or ⌘-K opens the palette, also from a text field.
(() => {
  const FOLLOWS_MS = 1500; // the maximum time between "g" and its letter
  let went = -Infinity;

  // A dialog is fetched when it is opened for the first time.
  const open = async (id, address) => {
    if (!document.getElementById(id)) {
      const answer = await longline.ask(address).catch(() => null);
      if (!answer?.ok) return;
      const part = document.createElement("template");
      part.innerHTML = await answer.text();
      if (!document.getElementById(id)) document.body.append(part.content);
    }
    if (!document.querySelector("dialog[open]")) document.getElementById(id).showModal();
  };

  document.addEventListener("keydown", (event) => {
    const { palette, shortcuts } = document.querySelector("[data-palette]")?.dataset ?? {};
    if (!palette || event.altKey || event.repeat) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() !== "k" || event.shiftKey) return;
      event.preventDefault();
      open("palette", palette);
      return;
    }
    // A field in a closed dialog keeps the focus for a moment.
    const field = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (field?.checkVisibility() || document.querySelector("dialog[open]")) return;
    const follows = event.timeStamp - went < FOLLOWS_MS;
    went = event.key === "g" && !follows ? event.timeStamp : -Infinity;
    if (follows) {
      const page = document.querySelector(`.ll-header [data-key="${CSS.escape(event.key)}"]`);
      if (page) location.assign(page.href);
    } else if (event.key === "/") {
      const search = document.getElementById("search");
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "?") {
      event.preventDefault();
      open("shortcuts", shortcuts);
    }
  });
})();
