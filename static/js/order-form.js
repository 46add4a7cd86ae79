// Shows only the fields that an end's tagging looks at. A hidden field is disabled, so it is not sent.
(() => {
  const VLANS = { untagged: 0, dot1q: 1, qinq: 2, dot1ad: 2 };

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
  const fitAll = () => document.querySelectorAll("[data-end]").forEach(fit);

  document.addEventListener("change", (event) => {
    if (event.target.matches('select[name$="-tagging"]')) fit(event.target.closest("[data-end]"));
  });
  // A form that came back with its mistakes is a new one.
  document.addEventListener("htmx:load", () => {
    fitAll();
    document.getElementById("error-summary")?.focus();
  });
  fitAll();
})();
