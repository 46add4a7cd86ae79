// Counts down to the moments in data-until, such as "14:59", and shows 0:00 afterwards.
(() => {
  const show = (timer) => {
    const left = Math.max(0, Math.round((new Date(timer.dataset.until) - Date.now()) / 1000));
    timer.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    timer.classList.toggle("ll-countdown-soon", left < 60);
    timer.hidden = false;
  };
  const showAll = () => document.querySelectorAll("[data-until]").forEach(show);
  document.addEventListener("htmx:load", showAll);
  setInterval(showAll, 1000);
  showAll();
})();
