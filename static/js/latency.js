// Draws a VLL's latency from the REST API: the shortest, mean and longest round trip of each interval. It shows the
// period of the throughput graph and, while open, refreshes together with that graph.
(() => {
  const section = document.getElementById("latency");
  const HEIGHT = 160;
  const HUNDREDTHS = new Intl.NumberFormat(document.documentElement.lang, {
    maximumFractionDigits: 2, minimumFractionDigits: 2,
  });
  const texts = section.querySelector("[data-texts]").dataset;
  const message = section.querySelector("[data-message]");
  const figure = section.querySelector("[data-chart]");
  const target = figure.querySelector("[data-plot]");
  let plot = null;
  let last = null;
  let newest = 0;

  const duration = (us) => {
    if (us === null || us === undefined) return "–";
    return us >= 1e5 ? `${Math.round(us / 1e3)} ms` : us >= 1e3 ? `${HUNDREDTHS.format(us / 1e3)} ms` : `${Math.round(us)} µs`;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const options = (width, format) => ({
    width,
    height: HEIGHT,
    cursor: { sync: { key: "throughput" }, y: false, drag: { x: false, y: false } },
    legend: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1000] } },
    axes: [
      { stroke: colour("--ll-muted-text"), grid: { stroke: colour("--ll-line"), width: 1 }, ticks: { show: false },
        size: 28, space: 60, values: (_plot, splits) => splits.map((at) =>
          format.format(new Date(at * 1000))) },
      { stroke: colour("--ll-muted-text"), grid: { stroke: colour("--ll-line"), width: 1 }, ticks: { show: false },
        size: 90, values: (_plot, splits) => splits.map(duration) },
    ],
    series: [
      {},
      { stroke: colour("--ll-muted-text"), width: 1, dash: [2, 4], points: { show: false } },
      { stroke: colour("--ll-in"), width: 1.5, points: { show: false } },
      { stroke: colour("--ll-out"), width: 1, dash: [6, 3], points: { show: false } },
    ],
  });

  const say = (text) => {
    message.textContent = text;
    message.hidden = !text;
  };
  const show = ({ answer, format }) => {
    const came = answer.round_trips.filter((row) => row[2] !== null);
    const lost = answer.round_trips.reduce((sum, row) => sum + (row[4] ?? 0), 0);
    section.dataset.points = String(came.length);
    section.querySelector("[data-simulated]").hidden = !answer.simulated;
    const figures = section.querySelector("[data-figures]");
    plot?.destroy();
    plot = null;
    figure.hidden = figures.hidden = came.length === 0;
    const losses = section.querySelector("[data-lost]");
    losses.hidden = lost === 0;
    losses.querySelector("[data-lost-count]").textContent = lost;
    if (came.length === 0) {
      say(lost ? texts.lost : texts.empty);
      return;
    }
    say("");
    plot = new uPlot(options(target.clientWidth, format), [0, 1, 2, 3].map((column) =>
      answer.round_trips.map((row) => row[column])), target);
    const values = {
      current: came.at(-1)[2],
      shortest: came.reduce((least, row) => Math.min(least, row[1]), Infinity),
      mean: came.reduce((sum, row) => sum + row[2], 0) / came.length,
      longest: came.reduce((most, row) => Math.max(most, row[3]), 0),
    };
    for (const [name, value] of Object.entries(values)) {
      figures.querySelector(`[data-figure="${name}"]`).textContent = duration(value);
    }
  };

  let shown = null; // the period of the throughput graph
  const refresh = async () => {
    if (!section.open || !shown) return;
    const { from, to, format } = shown;
    const mine = ++newest;
    try {
      const answer = await longline.ask(`${section.dataset.url}?from=${from}&to=${to}`, {
        headers: { Accept: "application/json" },
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const body = await answer.json();
      if (mine !== newest) return; // another period was chosen meanwhile
      last = { answer: body, format };
      show(last);
    } catch {
      if (mine === newest) say(texts.failed);
    }
  };
  document.addEventListener("longline:window", ({ detail }) => {
    shown = detail;
    refresh();
  });
  section.addEventListener("toggle", refresh);
  const redraw = () => { if (last && section.open) show(last); };
  document.addEventListener("longline:theme", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    redraw();
  });
})();
