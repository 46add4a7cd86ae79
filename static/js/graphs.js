// Draws the graphs of a line or of a port from the REST API.
const graphs = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (options) => ({
    stroke: colour("--ll-muted-text"), grid: { stroke: colour("--ll-line"), width: 1 }, ticks: { show: false }, ...options,
  });
  return {
    colour,
    // The axis of times in this format, and the axis of values.
    axes: (format, values) => [
      axis({ size: 28, space: 60, values: (_plot, splits) => splits.map((at) => format.format(new Date(at * 1000))) }),
      axis({ size: 90, ...values }),
    ],
    // Write a message above the graphs of a section.
    say: (section, text) => {
      const message = section.querySelector("[data-message]");
      message.textContent = text;
      message.hidden = !text;
    },
    load: async (url) => {
      const answer = await longline.ask(url, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      return answer;
    },
    // Draw again for another theme or another width of the window.
    onRedraw: (redraw) => {
      document.addEventListener("longline:theme", redraw);
      let width = window.innerWidth;
      window.addEventListener("resize", () => {
        if (window.innerWidth === width) return;
        width = window.innerWidth;
        redraw();
      });
    },
  };
})();
// The latency of a line: the shortest, mean and longest round trip of each interval. It shows the period of the
// throughput graph and, while open, refreshes together with that graph.
(() => {
  const { colour, axes, say, load, onRedraw } = graphs;
  const section = document.getElementById("latency");
  if (!section) return;
  const HEIGHT = 160;
  const HUNDREDTHS = new Intl.NumberFormat(document.documentElement.lang, {
    maximumFractionDigits: 2, minimumFractionDigits: 2,
  });
  const texts = section.querySelector("[data-texts]").dataset;
  const figure = section.querySelector("[data-chart]");
  const target = figure.querySelector("[data-plot]");
  let plot = null;
  let last = null;
  let newest = 0;

  const duration = (us) => {
    if (us === null || us === undefined) return "–";
    return us >= 1e5 ? `${Math.round(us / 1e3)} ms` : us >= 1e3 ? `${HUNDREDTHS.format(us / 1e3)} ms` : `${Math.round(us)} µs`;
  };
  const options = (width, format) => ({
    width,
    height: HEIGHT,
    cursor: { sync: { key: "throughput" }, y: false, drag: { x: false, y: false } },
    legend: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1000] } },
    axes: axes(format, { values: (_plot, splits) => splits.map(duration) }),
    series: [
      {},
      { stroke: colour("--ll-muted-text"), width: 1, dash: [2, 4], points: { show: false } },
      { stroke: colour("--ll-in"), width: 1.5, points: { show: false } },
      { stroke: colour("--ll-out"), width: 1, dash: [6, 3], points: { show: false } },
    ],
  });

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
      say(section, lost ? texts.lost : texts.empty);
      return;
    }
    say(section, "");
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
      const answer = await load(`${section.dataset.url}?from=${from}&to=${to}`);
      const body = await answer.json();
      if (mine !== newest) return; // another period was chosen meanwhile
      last = { answer: body, format };
      show(last);
    } catch {
      if (mine === newest) say(section, texts.failed);
    }
  };
  document.addEventListener("longline:window", ({ detail }) => {
    shown = detail;
    refresh();
  });
  section.addEventListener("toggle", refresh);
  onRedraw(() => { if (last && section.open) show(last); });
})();
// The throughput of a line (in and out of each end) or of a port, in bit/s or packet/s. A null interrupts the curve:
// nothing was measured, which differs from zero. Out is drawn below the axis, so that equal traffic in both directions
// stays visible. The period is one of the ranges up to now, or a window that the user enters or selects by dragging.
(() => {
  const { colour, axes, say, load, onRedraw } = graphs;
  const section = document.getElementById("throughput");
  const RANGES = { // seconds shown, seconds per point, and seconds until a new point is possible
    hour: { span: 3600, step: 10, fresh: 10 },
    day: { span: 86400, step: 300, fresh: 60 },
    week: { span: 604800, step: 900, fresh: 300 },
    month: { span: 30 * 86400, step: 3600, fresh: 900 },
    year: { span: 365 * 86400, step: 86400, fresh: 3600 },
  };
  const LANGUAGE = document.documentElement.lang;
  const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const DAY = { month: "short", day: "numeric" };
  const FORMATS = [ // maximum of seconds shown
    [600, { ...CLOCK, second: "2-digit" }], [86400, CLOCK], [3 * 86400, { ...DAY, ...CLOCK }], [62 * 86400, DAY],
    [Infinity, { month: "short", year: "numeric" }],
  ].map(([longest, parts]) => [longest, new Intl.DateTimeFormat(LANGUAGE, parts)]);
  const MOMENT = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
  // A drag over fewer pixels is a click.
  const SHORTEST_DRAG = 8;
  const SHORTEST_WINDOW_S = 60;
  // Draw the bandwidth limit if the traffic reaches this fraction of it.
  const LIMIT_FROM = 0.4;
  const REFRESH_MS = 10000;
  const NOW_S = 60;
  const HEIGHT = matchMedia("(max-width: 48rem)").matches ? 120 : 150;
  const texts = section.querySelector("[data-texts]").dataset;
  const plots = {};
  const charts = [...section.querySelectorAll("[data-chart]")].map((figure) => figure.dataset.chart);
  let range = section.querySelector('[data-range][aria-pressed="true"]').dataset.range;
  let unit = "bits";
  let shownUnit = "bit/s"; // of the drawn figures; a request for another unit may be under way
  let chosen = null; // { from, to } in epoch seconds, while the user's window is shown
  let newest = 0;

  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const decimals = (value, most, least) => value.toLocaleString(LANGUAGE, {
    maximumFractionDigits: most, minimumFractionDigits: least, useGrouping: false,
  });
  const rate = (value, shortest = false) => {
    if (value === null || value === undefined) return "–";
    const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(value) >= f) ?? [1, ""];
    const digits = Math.abs(value / factor) >= 100 || factor === 1 ? 0 : Math.abs(value / factor) >= 10 ? 1 : 2;
    return `${decimals(value / factor, digits, shortest ? 0 : digits)} ${prefix}${shownUnit}`;
  };
  const tick = (bps) => (bps === 0 ? "0" : rate(Math.abs(bps), true));
  // The percentage of the line's CIR or of the port's speed, for bit/s only.
  const bandwidth = Number(section.dataset.bandwidth);
  const ofAll = (value) =>
    value === null || value === undefined || unit === "packets" ? "" : ` (${Math.round((value / bandwidth) * 100)} %)`;

  const format = ({ from, to }) => FORMATS.find(([longest]) => to - from <= longest)[1];
  const zoom = (plot) => {
    const { left, width } = plot.select;
    if (width < SHORTEST_DRAG) return;
    const from = Math.floor(plot.posToVal(left, "x"));
    const to = Math.ceil(plot.posToVal(left + width, "x"));
    const missing = Math.max(0, SHORTEST_WINDOW_S - (to - from));
    choose({ from: from - Math.ceil(missing / 2), to: to + Math.ceil(missing / 2) });
  };

  // The values at the pointer, in both graphs: their cursors move together.
  const hover = (line) => (plot) => {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) {
      line.textContent = "";
      return;
    }
    const [time, inward, outward] = plot.data.slice(0, 3).map((column) => column[at]);
    const when = MOMENT.format(new Date(time * 1000));
    const out = outward === null ? null : -outward;
    line.textContent = `${when} · ${texts.in} ${rate(inward)} · ${texts.out} ${rate(out)}`;
  };
  const widest = (low, high) => {
    const reach = (value) => (value > 0 ? value * 1.1 : 0);
    return low < 0 || high > 0 ? [-reach(-low), reach(high)] : [-1000, 1000];
  };

  const options = (width, figure, window) => ({
    width,
    height: HEIGHT,
    // Space for the last time below the graph.
    padding: [null, 28, null, null],
    cursor: { sync: { key: "throughput" }, y: false, drag: { x: true, y: false, setScale: false } },
    hooks: { setSelect: [zoom], setCursor: [hover(figure.querySelector("[data-hover]"))] },
    legend: { show: false },
    scales: {
      x: { range: () => [window.from, window.to] },
      y: { range: (_plot, low, high) => widest(low, high) },
    },
    axes: axes(format(window), { space: 24, values: (_plot, splits) => splits.map(tick) }),
    series: [
      {},
      { stroke: colour("--ll-in"), fill: colour("--ll-in-fill"), width: 1.5, spanGaps: false,
        points: { show: false } },
      { stroke: colour("--ll-out"), fill: colour("--ll-out-fill"), width: 1.5, spanGaps: false,
        points: { show: false } },
      ...Array(2).fill({ stroke: colour("--ll-muted-text"), width: 1, dash: [2, 4], points: { show: false } }),
      ...Array(2).fill({ stroke: colour("--ll-danger"), width: 1, points: { show: false } }),
    ],
  });

  const draw = (answer, window) => {
    const figures = [...section.querySelectorAll("[data-chart]")];
    // With little traffic the bandwidth limit would flatten the curve. The table then shows percentages.
    const peak = Math.max(...charts.flatMap((end) => answer[end].flatMap((row) => [row[1] ?? 0, row[2] ?? 0])));
    const limit = answer.unit === "bit/s" && peak >= bandwidth * LIMIT_FROM ? bandwidth : null;
    // Show both before either is measured: the width of the grid's columns depends on both.
    for (const figure of figures) {
      plots[figure.dataset.chart]?.destroy();
      figure.hidden = false;
    }
    for (const figure of figures) {
      const end = figure.dataset.chart;
      const target = figure.querySelector("[data-plot]");
      const below = (value) => (value === null ? null : -value);
      const p95 = answer.p95?.[end]?.max ?? null; // null where its 5-minute samples were deleted
      const data = [
        answer[end].map((row) => row[0]),
        answer[end].map((row) => row[1]),
        answer[end].map((row) => below(row[2])),
        answer[end].map(() => p95),
        answer[end].map(() => below(p95)),
        answer[end].map(() => limit),
        answer[end].map(() => below(limit)),
      ];
      figure.querySelector("[data-p95]").hidden = p95 === null;
      figure.querySelector("[data-limit]").hidden = limit === null;
      plots[end] = new uPlot(options(target.clientWidth, figure, window), data, target);
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
      for (const cell of row.querySelectorAll("[data-figure]")) {
        const value = figures[cell.dataset.figure];
        cell.textContent = rate(value) + ofAll(value);
      }
    }
    table.hidden = false;
  };

  // The newest rates, next to the ends above, while the graph reaches to now with steps of minutes. An end shows no
  // rate that is older than a minute and three steps, or older than the line's last change.
  const tellNow = () => {
    if (!last) return;
    const { answer, window } = last;
    for (const place of document.querySelectorAll("[data-rate]")) {
      const [end, direction] = place.dataset.rate.split(" ");
      const changed = Number(place.closest("[data-now]")?.dataset.now || 0);
      const late = answer[end].filter(([at]) => at >= Math.max(changed, window.to - NOW_S - 3 * answer.step_s));
      const value = measured(late.map((point) => point[direction === "in" ? 1 : 2])).at(-1);
      place.textContent = rate(value) + ofAll(value);
    }
    const known = !chosen && answer.step_s <= RANGES.day.step
      && charts.some((end) => answer[end].some((row) => row[1] !== null));
    for (const part of document.querySelectorAll("[data-now]")) part.hidden = !known;
  };

  const show = (answer, window) => {
    shownUnit = answer.unit;
    const anything = charts.some((end) => answer[end].some((row) => row[1] !== null || row[2] !== null));
    section.querySelector("[data-simulated]").hidden = !answer.simulated;
    section.dataset.points = String(measured(charts.flatMap((end) => answer[end]).map((row) => row[1])).length);
    const missing = section.querySelector("[data-missing]");
    missing.hidden = !anything || !answer.missing;
    missing.querySelector("[data-missing-count]").textContent = answer.missing;
    if (!anything) {
      for (const part of section.querySelectorAll("[data-chart], [data-figures]")) part.hidden = true;
      say(section, texts.empty);
      return;
    }
    say(section, "");
    section.querySelector("[data-zoom]").hidden = false;
    draw(answer, window);
    tabulate(answer);
  };

  // Only for figures from a replica of the database.
  const tellAge = (asOf) => {
    const place = section.querySelector("[data-as-of]");
    place.hidden = !asOf;
    if (asOf) place.textContent = place.dataset.text.replace("{time}", MOMENT.format(new Date(asOf)));
  };

  let last = null; // { answer, window }
  let lastAt = 0;
  const csv = section.querySelector("[data-csv]");
  const csvUrl = csv?.getAttribute("href");
  const shown = () => {
    if (chosen) return chosen;
    const to = Math.floor(Date.now() / 1000);
    // Omit the time before the line existed: its few points would be hard to see at the edge.
    const from = Math.max(to - RANGES[range].span, Number(section.dataset.since));
    return { from: Math.min(from, to - SHORTEST_WINDOW_S), to };
  };
  // The step of the shortest range that contains the window. The portal chooses the step for the user's window and
  // for ports.
  const step = ({ from, to }) =>
    chosen || "ownStep" in section.dataset ? "" : `&step=${Object.values(RANGES).find(({ span }) => to - from <= span).step}`;
  const query = (window) => `?from=${window.from}&to=${window.to}${step(window)}&unit=${unit}`;
  const refresh = async () => {
    const mine = ++newest;
    const window = shown();
    const wanted = query(window);
    // Other graphs of the line show the same period.
    document.dispatchEvent(new CustomEvent("longline:window", { detail: { ...window, format: format(window) } }));
    try {
      const answer = await load(`${section.dataset.url}${wanted}`);
      const body = await answer.json();
      if (mine !== newest) return; // another period or unit was chosen meanwhile
      last = { answer: body, window };
      tellAge(answer.headers.get("Longline-As-Of"));
      lastAt = Date.now();
      if (csv) csv.href = `${csvUrl}${wanted}`;
      show(body, window);
      tellNow();
    } catch {
      if (mine !== newest) return;
      lastAt = 0; // request the present choice again soon
      say(section, texts.failed);
    }
  };

  const press = (buttons, name) => {
    for (const each of section.querySelectorAll(`[data-${buttons}]`)) {
      each.setAttribute("aria-pressed", String(each.dataset[buttons] === name));
    }
  };
  const custom = section.querySelector("[data-custom]");
  const reset = section.querySelector("[data-reset]");
  // The format of a datetime-local field: the reader's zone, to the minute.
  const written = (epoch) => {
    const at = new Date((epoch - new Date(epoch * 1000).getTimezoneOffset() * 60) * 1000);
    return at.toISOString().slice(0, 16);
  };
  const choose = (window) => {
    chosen = window;
    press("range", chosen ? "" : range);
    reset.hidden = !chosen;
    custom.elements.from.value = chosen ? written(chosen.from) : "";
    custom.elements.to.value = chosen ? written(chosen.to) : "";
    refresh();
  };
  for (const button of section.querySelectorAll("[data-range]")) {
    button.addEventListener("click", () => {
      range = button.dataset.range;
      choose(null);
    });
  }
  for (const button of section.querySelectorAll("[data-unit]")) {
    button.addEventListener("click", () => {
      unit = button.dataset.unit;
      press("unit", unit);
      refresh();
    });
  }
  custom.addEventListener("submit", (event) => {
    event.preventDefault();
    const [from, to] = ["from", "to"].map((name) => Math.floor(new Date(custom.elements[name].value) / 1000));
    const wrong = !(from < to);
    custom.elements.to.setCustomValidity(wrong ? texts.backwards : "");
    if (wrong) custom.elements.to.reportValidity();
    else choose({ from, to });
  });
  custom.addEventListener("input", () => custom.elements.to.setCustomValidity(""));
  reset.addEventListener("click", () => choose(null));
  section.querySelector("[data-more]").hidden = false;
  section.querySelector("[data-ranges]").hidden = false;
  // Each update of the live part replaces the ends.
  document.addEventListener("htmx:load", tellNow);
  onRedraw(() => { if (last) show(last.answer, last.window); });
  // The user's window has a fixed end, so it gets no new points.
  const isStale = () =>
    lastAt === 0 || (!chosen && Date.now() - lastAt >= RANGES[range].fresh * 1000 - REFRESH_MS / 2);
  setInterval(() => { if (document.visibilityState === "visible" && isStale()) refresh(); }, REFRESH_MS);
  refresh();
})();
