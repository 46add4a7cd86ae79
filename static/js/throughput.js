// Draws what the JSON door says of a VLL's throughput: in and out of each end, in bit/s.
// A null breaks the line: nothing was measured then, which is not zero.
(() => {
  const section = document.getElementById("throughput");
  const RANGES = { // seconds shown, seconds a point, and after how many something new can be there
    hour: { span: 3600, step: 10, fresh: 10, format: "{HH}:{mm}" },
    day: { span: 86400, step: 300, fresh: 60, format: "{HH}:{mm}" },
    week: { span: 604800, step: 900, fresh: 300, format: "{MMM} {D}" },
    month: { span: 30 * 86400, step: 3600, fresh: 900, format: "{MMM} {D}" },
    year: { span: 365 * 86400, step: 86400, fresh: 3600, format: "{MMM} {YYYY}" },
  };
  const REFRESH_MS = 10000;
  const HEIGHT = 200;
  const texts = section.querySelector("[data-texts]").dataset;
  const message = section.querySelector("[data-message]");
  const plots = {};
  let range = "hour";
  let asked = 0;

  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const rate = (bps) => {
    if (bps === null || bps === undefined) return "–";
    const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(bps) >= f) ?? [1, ""];
    const digits = Math.abs(bps / factor) >= 100 || factor === 1 ? 0 : Math.abs(bps / factor) >= 10 ? 1 : 2;
    return `${(bps / factor).toFixed(digits)} ${prefix}bit/s`;
  };
  const tick = (bps) => (bps === 0 ? "0" : rate(bps).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const options = (width) => ({
    width,
    height: HEIGHT,
    cursor: { sync: { key: "throughput" }, y: false },
    legend: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1000] } },
    axes: [
      { stroke: colour("--ll-muted-text"), grid: { stroke: colour("--ll-line"), width: 1 }, ticks: { show: false },
        size: 28, space: 60, values: (_plot, splits) => splits.map((at) =>
          uPlot.fmtDate(RANGES[range].format)(new Date(at * 1000))) },
      { stroke: colour("--ll-muted-text"), grid: { stroke: colour("--ll-line"), width: 1 }, ticks: { show: false },
        size: 78, values: (_plot, splits) => splits.map(tick) },
    ],
    series: [
      {},
      { label: "in", stroke: colour("--ll-in"), fill: colour("--ll-in-fill"), width: 1.5, spanGaps: false,
        points: { show: false } },
      { label: "out", stroke: colour("--ll-out"), width: 1.5, dash: [6, 3], spanGaps: false, points: { show: false } },
      { label: "95th percentile", stroke: colour("--ll-muted-text"), width: 1, dash: [2, 4], points: { show: false } },
    ],
  });

  const draw = (answer) => {
    const figures = [...section.querySelectorAll("[data-chart]")];
    // Both take their place before either is measured: the grid's columns depend on both.
    for (const figure of figures) {
      plots[figure.dataset.chart]?.destroy();
      figure.hidden = false;
    }
    for (const figure of figures) {
      const end = figure.dataset.chart;
      const target = figure.querySelector("[data-plot]");
      const data = [0, 1, 2].map((column) => answer[end].map((row) => row[column]));
      const p95 = answer.p95?.[end]?.max ?? null; // null where its 5 minutes are no longer kept
      data.push(answer[end].map(() => p95));
      figure.querySelector("[data-p95]").hidden = p95 === null;
      plots[end] = new uPlot(options(target.clientWidth), data, target);
    }
  };

  const measured = (values) => values.filter((value) => value !== null);
  const tabulate = (answer) => {
    const table = section.querySelector("[data-figures]");
    for (const row of table.querySelectorAll("tr[data-end]")) {
      const { end, direction } = row.dataset;
      const values = measured(answer[end].map((point) => point[direction === "in" ? 1 : 2]));
      const figures = {
        current: values.at(-1),
        average: values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null,
        maximum: values.length ? values.reduce((top, value) => Math.max(top, value), 0) : null,
        p95: answer.p95?.[end]?.[direction],
      };
      for (const [name, value] of Object.entries(figures)) {
        row.querySelector(`[data-figure="${name}"]`).textContent = rate(value);
      }
    }
    table.hidden = false;
  };

  const say = (text) => {
    message.textContent = text;
    message.hidden = !text;
  };
  const show = (answer) => {
    const anything = ["a_end", "z_end"].some((end) => answer[end].some((row) => row[1] !== null || row[2] !== null));
    section.querySelector("[data-simulated]").hidden = !answer.simulated;
    section.dataset.points = String(measured([...answer.a_end, ...answer.z_end].map((row) => row[1])).length);
    const missing = section.querySelector("[data-missing]");
    missing.hidden = !anything || !answer.missing;
    missing.querySelector("[data-missing-count]").textContent = answer.missing;
    if (!anything) {
      say(texts.empty);
      return;
    }
    say("");
    draw(answer);
    tabulate(answer);
  };

  let last = null;
  let lastAt = 0;
  const csv = section.querySelector("[data-csv]");
  const csvUrl = csv.getAttribute("href");
  const refresh = async () => {
    const mine = ++asked;
    const { span, step } = RANGES[range];
    const to = Math.floor(Date.now() / 1000);
    const query = `?from=${to - span}&to=${to}&step=${step}`;
    try {
      const answer = await fetch(`${section.dataset.url}${query}`, {
        headers: { Accept: "application/json" },
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const body = await answer.json();
      if (mine !== asked) return; // another range was chosen meanwhile
      last = body;
      lastAt = Date.now();
      csv.href = `${csvUrl}${query}`;
      show(body);
    } catch {
      if (mine === asked) say(texts.failed);
    }
  };

  for (const button of section.querySelectorAll("[data-range]")) {
    button.addEventListener("click", () => {
      range = button.dataset.range;
      for (const each of section.querySelectorAll("[data-range]")) {
        each.setAttribute("aria-pressed", String(each === button));
      }
      refresh();
    });
  }
  section.querySelector("[data-ranges]").hidden = false;
  const redraw = () => { if (last) show(last); };
  document.addEventListener("longline:theme", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    redraw();
  });
  const isStale = () => Date.now() - lastAt >= RANGES[range].fresh * 1000 - REFRESH_MS / 2;
  setInterval(() => { if (document.visibilityState === "visible" && isStale()) refresh(); }, REFRESH_MS);
  refresh();
})();
