// The palette's list below its text field, as ARIA's combobox pattern describes: the focus stays in the field, arrow
// keys choose, Enter opens. The server finds the entries.
(() => {
  const PAUSE_MS = 120; // the delay after the last key before a request
  let pause = 0;
  let request = new AbortController();
  let outdated = false; // the list is older than the text

  const field = () => document.getElementById("palette-text");
  const options = () => [...document.querySelectorAll("#palette-options [role=option]")];
  const chosen = () => options().find((option) => option.ariaSelected === "true");

  const choose = (option) => {
    for (const each of options()) each.ariaSelected = String(each === option);
    if (option) field().setAttribute("aria-activedescendant", option.id);
    else field().removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = options();
    const at = all.indexOf(chosen());
    choose(all[(at + by + all.length) % all.length]);
  };

  const ask = async () => {
    request.abort();
    request = new AbortController();
    const { palette } = document.querySelector("[data-palette]").dataset;
    try {
      const answer = await longline.ask(`${palette}?${new URLSearchParams({ q: field().value })}`, { signal: request.signal });
      if (!answer.ok) return;
      document.getElementById("palette-options").outerHTML = await answer.text();
    } catch {
      return;
    }
    outdated = false;
    choose(options()[0]);
    document.getElementById("palette-said").textContent = document.getElementById("palette-options").dataset.said;
  };

  document.addEventListener("input", (event) => {
    if (event.target !== field()) return;
    outdated = true;
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE_MS);
  });
  const openChosen = async () => {
    clearTimeout(pause);
    if (outdated) await ask();
    if (!outdated) (chosen() ?? options()[0])?.click();
  };

  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("#palette") || event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter") openChosen();
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const palette = event.target.closest?.("#palette");
    const press = event.target.closest?.("[data-press]")?.dataset.press;
    // A click on the backdrop has the dialog as its target.
    if (palette && (press || event.target === palette)) palette.close();
    if (press) document.getElementById(press).click();
  });
  // The text stays selected, and the next letter replaces it.
  document.addEventListener("focusin", (event) => {
    if (event.target !== field()) return;
    event.target.select();
    if (!chosen()) choose(options()[0]);
  });
})();
