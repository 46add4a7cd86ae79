// Shows only the fields that an end's tagging uses, and restores the input when the user comes back to the page. A
// hidden field is disabled, so the browser does not send it.
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
  // A line has two different ports: the port of one end is not offered for the other.
  const leaveOut = () => {
    const [a, z] = ["a_end", "z_end"].map((end) => document.querySelector(`select[name="${end}-port"]`));
    if (!a || !z) return;
    for (const [select, other] of [[a, z], [z, a]]) {
      for (const option of select.options) {
        option.hidden = option.disabled = option.value !== "" && option.value === other.value && option.value !== select.value;
      }
    }
  };
  // Connect errors from the response to their fields for screen readers.
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

  // Browsers restore only a part of a form, at different times, and without disabled fields.
  const written = () => [...(document.querySelector("form.ll-order")?.elements ?? [])].filter(
    (control) => control.name && control.matches("select, textarea, input:not([type=hidden])"),
  );
  const keep = () => {
    const values = written().map((control) => [control.name, control.type === "checkbox" ? control.checked : control.value]);
    stored.set("sessionStorage", KEPT, JSON.stringify(values));
  };
  const bringBack = () => {
    const values = new Map(stored.parsed("sessionStorage", KEPT) ?? []);
    for (const control of written()) {
      const value = values.get(control.name);
      if (value === undefined) continue;
      if (control.type === "checkbox") control.checked = value;
      else if (control.tagName !== "SELECT" || [...control.options].some((option) => option.value === value)) control.value = value;
    }
  };

  // Without scripts the button sends the form, and the response is the filled form.
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
  // Focus the errors of a returned form. Other updates do not move the focus.
  document.addEventListener("htmx:load", (event) => {
    fitAll();
    event.detail.elt.querySelector("#error-summary")?.focus();
  });
  document.addEventListener("htmx:afterSettle", () => {
    leaveOut();
    mark();
  });
  // Focus the first empty port without scrolling. Phones show the focus without opening the keyboard.
  const begin = () => {
    if (document.querySelector("[autofocus]")) return;
    const ports = [...document.querySelectorAll('#order-form select[name$="-port"]')];
    const open = ports.find((select) => select.value === "") ?? document.querySelector('#order-form input[name="cir"]');
    open?.focus({ preventScroll: true });
  };
  window.addEventListener("pagehide", keep);
  window.addEventListener("pageshow", (event) => {
    fitAll();
    // The browser restored the page from its cache. Whether the line is possible may have changed.
    if (event.persisted) document.body.dispatchEvent(new CustomEvent("longline:returned"));
  });
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") bringBack();
  else begin();
  fitAll();
})();
