// Keeps unsent input when the session ends: across the sign-in page, and after a form was refused for its outdated
// token. The copy is in the session storage of this tab, for the same account and page only. It never contains
// passwords, codes or files.
(() => {
  const KEY = "longline-input";
  const { reader } = document.getElementById("connection").dataset;
  const here = location.pathname + location.search;
  const KEPT = 'textarea, select, input:not([type="hidden"], [type="password"], [type="file"], [type="submit"], [autocomplete="one-time-code"])';

  const fields = () => [...document.querySelectorAll("main form")].flatMap((form) =>
    [...form.elements].filter((field) => field.name && field.matches(KEPT)));
  // A page may have several forms, and a form several fields of one name.
  const named = () => {
    const seen = new Map();
    return fields().map((field) => {
      const name = `${field.form.getAttribute("action") ?? ""} ${field.name}`;
      const nth = seen.get(name) ?? 0;
      seen.set(name, nth + 1);
      return [`${name} ${nth}`, field];
    });
  };
  const isTicked = (field) => ["checkbox", "radio"].includes(field.type);
  const valueOf = (field) => {
    if (isTicked(field)) return field.checked;
    return field.multiple ? [...field.selectedOptions].map((option) => option.value) : field.value;
  };
  const write = (kept) => stored.set("sessionStorage", KEY, kept ? JSON.stringify(kept) : null);
  const keep = (refused) => write({
    reader, page: here, refused, values: named().map(([name, field]) => [name, valueOf(field)]),
  });

  const fill = (field, value) => {
    if (isTicked(field)) field.checked = value;
    else if (field.multiple) for (const option of field.options) option.selected = value.includes(option.value);
    else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value)) field.value = value;
  };
  const restore = (kept) => {
    const values = new Map(kept.values);
    const changed = [];
    for (const [name, field] of named()) {
      const value = values.get(name);
      if (value === undefined || JSON.stringify(value) === JSON.stringify(valueOf(field))) continue;
      fill(field, value);
      const fold = field.closest("details");
      if (fold) fold.open = true;
      changed.push(field);
    }
    for (const field of changed) {
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    document.getElementById("input-restored").hidden = changed.length === 0;
  };

  // A submitted form is lost only if the response is the sign-in page or the refusal of an outdated token.
  const kept = stored.parsed("sessionStorage", KEY);
  const isRefusal = Boolean(document.querySelector("[data-form-refused]"));
  if (kept && (!reader || isRefusal)) {
    write({ ...kept, refused: true });
    document.getElementById("input-kept").hidden = isRefusal || !kept.values.length;
  } else if (kept) {
    write(null);
    const isMine = kept.refused && kept.reader === reader && kept.page === here;
    // After the page's scripts, which show the fields that a choice needs.
    if (isMine) document.addEventListener("DOMContentLoaded", () => restore(kept));
  }

  document.addEventListener("submit", (event) => {
    const isSignOut = !event.target.closest("main");
    if (reader && !event.defaultPrevented && event.target.method === "post" && !isSignOut) keep(false);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-sign-in]")) keep(true);
  });
})();
