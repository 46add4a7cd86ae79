// The one handler for all requests that scripts of this page send: htmx's own, polls, live parts and longline.ask.
// It says why the page is not current or why a request was refused (templates/ui/_connection.html), and removes the
// note when the reason is gone. Polling continues meanwhile. portal/web/page/middleware.py describes the headers.
const longline = {};
(() => {
  const notes = document.getElementById("connection");
  const { reader, page, unknown, unknownCause } = notes.dataset;
  const ENDED = ["signed-out", "other-account"];
  let shown = "";
  let ended = ""; // one of ENDED, from its answer until an answer within a session
  let changedAt = 0; // requests that were sent before this time say nothing about the session

  const show = (name) => {
    shown = name;
    for (const id of ["connection-lost", "signed-out", "other-account", "stale-form", "refused"]) {
      const note = document.getElementById(id);
      if (note) note.hidden = id !== name;
    }
  };
  const focus = () => document.getElementById(shown)?.focus();

  // A state that receives no updates must not look current: each badge of a part that refreshes says "Unknown".
  const outdated = new Map();
  const replace = (element, ...nodes) => {
    outdated.set(element, [...element.childNodes]);
    element.replaceChildren(...nodes);
  };
  const span = (name, text) => Object.assign(document.createElement("span"), { className: name, textContent: text });
  const outdate = () => {
    document.documentElement.dataset.outdated = "";
    for (const health of document.querySelectorAll("[data-live] .ll-health")) {
      if (!outdated.has(health)) replace(health, span("ll-badge", unknown), span("ll-cause", unknownCause));
    }
    for (const badge of document.querySelectorAll("[hx-get] .ll-badge")) {
      if (!outdated.has(badge) && !badge.closest(".ll-health")) replace(badge, unknown);
    }
  };
  const update = () => {
    delete document.documentElement.dataset.outdated;
    for (const [element, nodes] of outdated) element.replaceChildren(...nodes);
    outdated.clear();
    for (const part of document.querySelectorAll("[data-live]")) part.dispatchEvent(new CustomEvent("live"));
  };

  const end = (name, sentAt) => {
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    show(name);
    changedAt = ended ? Math.max(changedAt, sentAt) : performance.now();
    ended = name;
    outdate();
  };
  const lost = () => { if (!ended) show("connection-lost"); };
  // A poll that succeeds says nothing about the form or button that was refused.
  const back = (byPoll) => {
    const was = ended;
    if (shown === "connection-lost" || shown === was || !byPoll) show("");
    if (!was) return;
    ended = "";
    changedAt = performance.now();
    update();
  };
  const refuse = (status) => {
    const note = document.getElementById("refused");
    if (!note) return;
    note.textContent = note.getAttribute(`data-${status}`) ?? note.dataset.other;
    show("refused");
  };
  const renew = (token) => {
    for (const field of document.querySelectorAll('input[name="csrfmiddlewaretoken"], [data-csrf]')) field.value = token;
  };

  // by: "person" (a pressed button or link), "form" (a check while the user types) or "poll".
  const judge = ({ status, header, by, sentAt }) => {
    const reason = header("Longline-Refused") ?? (status === 401 && reader ? "signed-out" : "");
    const isOld = sentAt < changedAt;
    // An old answer does not end the note, but htmx has already put it into the page.
    if (ended && isOld) outdate();
    else if (ENDED.includes(reason) && !isOld) end(reason, sentAt);
    else if (ENDED.includes(reason) || reason === "stale-form") {
      // The form is of an earlier session.
      back(true);
      if (!isOld) renew(header("Longline-Form-Token"));
      // The check of a form changes nothing, so it is repeated without a confirmation.
      if (by === "form") document.body.dispatchEvent(new CustomEvent("longline:returned"));
      else if (by === "person") show("stale-form");
    } else if (status >= 500) lost();
    else if (status >= 400 && status !== 422) {
      back(true);
      if (by === "person") refuse(status);
    } else if (status > 0) back(by === "poll");
    if (by === "person") focus();
  };

  const senderOf = ({ requestConfig: { triggeringEvent, verb } }) => {
    if (["click", "submit"].includes(triggeringEvent?.type)) return "person";
    return verb === "get" ? "poll" : "form";
  };
  document.addEventListener("htmx:configRequest", (event) => {
    if (reader) event.detail.headers["Longline-Reader"] = reader;
  });
  const sent = new WeakMap(); // time by htmx's request
  document.addEventListener("htmx:beforeSend", ({ detail: { xhr } }) => sent.set(xhr, performance.now()));
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const { xhr } = detail;
    if (!xhr) return;
    judge({
      status: xhr.status,
      header: (name) => xhr.getResponseHeader(name),
      by: senderOf(detail),
      sentAt: sent.get(xhr) ?? performance.now(),
    });
  });
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  window.addEventListener("offline", lost);
  window.addEventListener("online", () => { if (shown === "connection-lost") show(""); });

  // fetch, for the scripts of this page. Throws TypeError where the portal does not answer.
  longline.ask = async (url, { headers, ...options } = {}) => {
    const marked = new Headers(headers);
    marked.set("HX-Request", "true");
    if (reader) marked.set("Longline-Reader", reader);
    const sentAt = performance.now();
    let answer;
    try {
      answer = await fetch(url, { ...options, headers: marked });
    } catch (error) {
      if (error.name !== "AbortError") lost();
      throw error;
    }
    judge({ status: answer.status, header: (name) => answer.headers.get(name), by: "poll", sentAt });
    const elsewhere = answer.headers.get("HX-Redirect");
    if (elsewhere) location.assign(elsewhere);
    return answer;
  };

  // The address bar shows the page and not the target of its form, so that reloading and signing in lead back.
  if (page && page !== location.pathname + location.search) {
    // A form without an action attribute is still sent to the address that its page came from.
    for (const form of document.querySelectorAll("form:not([action])")) form.setAttribute("action", location.href);
    for (const part of document.querySelectorAll('[hx-post=""]')) part.setAttribute("hx-post", location.href);
    history.replaceState(history.state, "", page);
  }
  const here = location.pathname + location.search;
  for (const link of document.querySelectorAll("[data-sign-in]")) link.href += `?next=${encodeURIComponent(here)}`;
})();
