// Shows only the fields that an end's tagging looks at, and keeps what was written for whoever comes Back.
// A hidden field is disabled, so it is not sent.
(() => {
  const VLANS = { untagged: 0, dot1q: 1, qinq: 2, dot1ad: 2 };
  const KEPT = `longline-form ${location.pathname}`;

  const offer = (fields, wanted) => {
    fields.hidden = !wanted;
    for (const control of fields.querySelectorAll("input, select")) control.disabled = !wanted;
  };
  const fit = (end) => {
    const count = VLANS[end.querySelector('select[name$="-tagging"]').value];
    offer(end.querySelector('[data-field="outer_vlan"]'), count >= 1);
    offer(end.querySelector('[data-field="inner_vlan"]'), count === 2);
    offer(end.querySelector("[data-advanced]"), count >= 1);
  };
  const fitAll = () => {
    document.querySelectorAll("[data-end]").forEach(fit);
    leaveOut();
  };
  // A line goes elsewhere: the port of one end is not offered for the other.
  const leaveOut = () => {
    const [a, z] = ["a_end", "z_end"].map((end) => document.querySelector(`select[name="${end}-port"]`));
    if (!a || !z) return;
    for (const [select, other] of [[a, z], [z, a]]) {
      for (const option of select.options) {
        option.hidden = option.disabled = option.value !== "" && option.value === other.value && option.value !== select.value;
      }
    }
  };
  // What the answer put below a field belongs to it for those who do not see it, too.
  const mark = () => {
    for (const errors of document.querySelectorAll("form.ll-order .ll-error")) {
      const control = document.getElementById(errors.id.replace(/_error$/, ""));
      const wrong = errors.textContent.trim() !== "";
      if (wrong) control?.setAttribute("aria-invalid", "true");
      else control?.removeAttribute("aria-invalid");
      control?.closest(".ll-field")?.classList.toggle("ll-field-invalid", wrong);
      const others = (control?.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== errors.id);
      control?.setAttribute("aria-describedby", [...others, ...(wrong ? [errors.id] : [])].join(" "));
    }
  };

  // Browsers bring back some of a form, at a time of their own and without what was disabled meanwhile.
  const written = () => [...(document.querySelector("form.ll-order")?.elements ?? [])].filter(
    (control) => control.name && control.matches("select, textarea, input:not([type=hidden])"),
  );
  const keep = () => {
    const values = written().map((control) => [control.name, control.type === "checkbox" ? control.checked : control.value]);
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(values));
    } catch {
      // storage may be forbidden; then the browser's own memory has to do
    }
  };
  const bringBack = () => {
    let values;
    try {
      values = new Map(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
    } catch {
      return;
    }
    for (const control of written()) {
      const value = values.get(control.name);
      if (value === undefined) continue;
      if (control.type === "checkbox") control.checked = value;
      else if (control.tagName !== "SELECT" || [...control.options].some((option) => option.value === value)) control.value = value;
    }
  };

  // Without scripts the button sends the form, and it comes back filled in.
  document.addEventListener("click", (event) => {
    const field = document.getElementById(event.target.closest?.("[data-fill]")?.dataset.fill ?? "");
    if (!field) return;
    event.preventDefault();
    field.value = "any";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches('select[name$="-tagging"]')) fit(event.target.closest("[data-end]"));
    if (event.target.matches('select[name$="-port"]')) leaveOut();
  });
  // A form that came back with its mistakes is a new one; what else arrives leaves readers where they are.
  document.addEventListener("htmx:load", (event) => {
    fitAll();
    event.detail.elt.querySelector("#error-summary")?.focus();
  });
  document.addEventListener("htmx:afterSettle", () => {
    leaveOut();
    mark();
  });
  // One begins with the first port that is not chosen yet; phones show it without going there.
  const begin = () => {
    if (document.querySelector("[autofocus]")) return;
    const ports = [...document.querySelectorAll('#order-form select[name$="-port"]')];
    const open = ports.find((select) => select.value === "") ?? document.querySelector('#order-form input[name="cir"]');
    open?.focus({ preventScroll: true });
  };
  window.addEventListener("pagehide", keep);
  window.addEventListener("pageshow", (event) => {
    fitAll();
    // The page as it was left: whether the line is possible may have changed meanwhile.
    if (event.persisted) document.body.dispatchEvent(new CustomEvent("longline:returned"));
  });
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") bringBack();
  else begin();
  fitAll();
})();
