// Sends a trial request of an operation to the API, as the reader or with an API token, and shows the response. The
// token is kept only for this tab and this reader, and is sent only in the Authorization header.
(() => {
  const KEY = "longline-try-token";
  const SHOWN_HEADERS = ["X-Request-Id", "Content-Type", "ETag", "Location", "Retry-After", "Idempotency-Replayed"];
  const MOST_SHOWN = 100_000; // characters of a body
  const settings = document.getElementById("try-as");
  const texts = settings.querySelector("[data-texts]").dataset;
  const token = document.getElementById("try-token");
  const dialog = document.getElementById("try-confirm");

  const keep = () => {
    const { user } = settings.dataset;
    stored.set("sessionStorage", KEY, token.value ? JSON.stringify({ user, token: token.value }) : null);
  };
  const kept = () => {
    const found = stored.parsed("sessionStorage", KEY);
    return found?.user === settings.dataset.user ? found.token : "";
  };
  const choice = () => settings.querySelector('input[name="try-as"]:checked').value;
  const offer = () => { settings.querySelector("[data-token]").hidden = choice() !== "token"; };

  const confirmed = (request) => new Promise((resolve) => {
    dialog.querySelector("[data-request]").textContent = `${request.method} ${request.url}`;
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "send"), { once: true });
    dialog.showModal();
  });

  const drawn = () => {
    // crypto.randomUUID exists only on secure pages.
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const requestOf = (form) => {
    const headers = new Headers();
    const query = new URLSearchParams();
    let path = form.dataset.path;
    for (const field of form.querySelectorAll("[data-name]")) {
      const { name, in: place } = field.dataset;
      const value = field.value.trim();
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
      else if (place === "query" && value) query.set(name, value);
      else if (name === "Idempotency-Key") headers.set(name, value || drawn());
      else if (value) headers.set(name, value);
    }
    const body = form.querySelector('[data-in="body"]')?.value;
    if (body !== undefined) headers.set("Content-Type", "application/json");
    const text = query.toString();
    return { method: form.dataset.method, url: text ? `${path}?${text}` : path, headers, body };
  };
  const signed = (request, form) => {
    if (form.dataset.unsigned !== undefined) return { ...request, credentials: "omit" };
    if (choice() === "token") {
      request.headers.set("Authorization", `Bearer ${token.value.trim()}`);
      return { ...request, credentials: "omit" };
    }
    request.headers.set("X-CSRFToken", settings.querySelector("[data-csrf]").value);
    return { ...request, credentials: "same-origin" };
  };

  const say = (form, text) => { form.querySelector("[data-result]").textContent = text; };
  const readable = (text, type) => {
    if (!/[/+]json\b/.test(type)) return text;
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  };
  const show = (form, answer, text, took) => {
    const result = document.getElementById("try-result").content.cloneNode(true);
    result.querySelector("[data-status]").textContent = `${answer.status} ${answer.statusText}`.trim();
    result.querySelector("[data-time]").textContent = `${Math.round(took)} ms`;
    for (const name of SHOWN_HEADERS.filter((each) => answer.headers.has(each))) {
      const [term, value] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      value.textContent = answer.headers.get(name);
      result.querySelector("[data-headers]").append(term, value);
    }
    const whole = readable(text, answer.headers.get("Content-Type") ?? "");
    const body = result.querySelector("[data-body]");
    body.textContent = whole.slice(0, MOST_SHOWN);
    body.hidden = whole === "";
    result.querySelector("[data-cut]").hidden = whole.length <= MOST_SHOWN;
    form.querySelector("[data-result]").replaceChildren(result);
  };

  const send = async (form) => {
    const request = requestOf(form);
    const withToken = choice() === "token" && form.dataset.unsigned === undefined;
    if (withToken && !token.value.trim()) {
      say(form, texts.missing);
      token.focus();
      return;
    }
    if (form.dataset.confirm !== undefined && !(await confirmed(request))) return;
    const button = form.querySelector("button[type=submit]");
    button.disabled = true;
    say(form, texts.sending);
    const began = performance.now();
    try {
      const { url, ...options } = signed(request, form);
      const answer = await fetch(url, { ...options, cache: "no-store" });
      show(form, answer, await answer.text(), performance.now() - began);
    } catch {
      say(form, texts.lost);
    } finally {
      button.disabled = false;
    }
  };

  settings.querySelector("[data-without-scripts]").hidden = true;
  token.value = kept();
  if (token.value) settings.querySelector('input[value="token"]').checked = true;
  offer();
  token.addEventListener("input", keep);
  settings.addEventListener("change", offer);
  settings.querySelector("[data-forget]").addEventListener("click", () => {
    token.value = "";
    keep();
    token.focus();
  });
  for (const form of document.querySelectorAll(".ll-try form")) {
    form.querySelector("button[type=submit]").disabled = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form);
    });
  }
})();
