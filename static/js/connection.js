// Says when the portal stops answering, and takes it back when it answers again. Polling goes on meanwhile.
(() => {
  const note = document.getElementById("connection-lost");
  const lost = () => { note.hidden = false; };
  const back = () => { note.hidden = true; };
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("longline:lost", lost);
  document.addEventListener("longline:back", back);
  window.addEventListener("offline", lost);
  window.addEventListener("online", back);
  document.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr?.status ?? 0;
    if (status >= 500) lost();
    else if (status > 0) back();
  });
})();
