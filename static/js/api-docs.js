// The API documentation: remembers the language of the examples, copies examples, and redirects old links.
(() => {
  const KEY = "longline-api-language";
  const COPIED_MS = 2000;

  // For links to the former single page: the fragment names an operation, and its list entry links to the
  // operation's page.
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".ll-operations > li");
  const leadsTo = entry?.querySelector("a");
  if (leadsTo?.pathname !== undefined && leadsTo.pathname !== location.pathname) location.replace(leadsTo.href);

  const choose = (language) => {
    for (const choice of document.querySelectorAll(".ll-examples input[type=radio]")) {
      choice.checked = choice.value === language;
    }
  };
  const language = stored.get("localStorage", KEY);
  if (document.querySelector(`.ll-examples input[value="${CSS.escape(language ?? "")}"]`)) choose(language);

  document.addEventListener("change", (event) => {
    const choice = event.target;
    if (!choice.matches(".ll-examples input[type=radio]")) return;
    // The examples above this one change too. Keep this one at its scroll position.
    const before = choice.getBoundingClientRect().top;
    choose(choice.value);
    scrollBy({ top: choice.getBoundingClientRect().top - before, behavior: "instant" });
    stored.set("localStorage", KEY, choice.value);
  });

  // Browsers offer the clipboard only on secure pages.
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const label = button.textContent;
      button.hidden = false;
      button.addEventListener("click", async () => {
        const chosen = button.parentElement.querySelector("input:checked").value;
        await navigator.clipboard.writeText(button.parentElement.querySelector(`[data-language="${chosen}"]`).textContent);
        button.textContent = button.dataset.copy;
        setTimeout(() => { button.textContent = label; }, COPIED_MS);
      });
    }
  }
})();
