// The timeline of the run: for each clock a chart with an axis of its own, and a row for each thread or device's queue.
// The host's chart has the enqueueing of work that a device times. The work itself is in the chart of the device.
"use strict";
(() => {
  const { data, nodes, calls, clocks, make, timeText, bytesElement } = report;
  const section = document.getElementById("timeline"), [LEFT, ROW, TOP, LEAST_WIDTH] = [140, 34, 24, 640];
  const ROUNDING = 0.03; // microseconds by which rounded times of touching calls may overlap
  const MOST_DRAWN = 3000; // bars of a chart in its window; the longest of more
  const tracks = data.run ? data.run.tracks.map(([name, clock], index) => ({ name, clock, index })) : [];
  let chosen = -1, charts = null, side = null;

  const shortName = (name) => name.slice(name.lastIndexOf("/") + 1);
  // The bars of a clock: the calls that it times, and on the host's the enqueueing of others.
  const barsOf = (clock) => calls.filter((call) => call.clock === clock || (clock === 0 && call.enqueued)).map((call) =>
    (call.clock === clock ? { call, start: call.start, us: call.us, track: call.track } : { call, ...call.enqueued, isEnqueueing: true }));

  // Give each bar the first row that is free: calls inside a loop or a branch stand below it.
  const placeBars = (rows, bars) => {
    let next = 0;
    for (const track of rows) {
      const open = []; // by row of this track, the ends of the bars around
      for (const bar of bars.filter((b) => b.track === track.index).sort((a, b) => a.start - b.start || b.us - a.us)) {
        const end = bar.start + bar.us;
        open.forEach((ends) => { while (ends.length && ends[ends.length - 1] <= bar.start + ROUNDING) ends.pop(); });
        let row = open.findIndex((ends) => !ends.length);
        if (row < 0) row = open.push([]) - 1;
        open[row].push(end);
        bar.row = next + row;
      }
      track.row = next;
      next += Math.max(1, open.length);
    }
    return next;
  };
  const makeChart = (clock) => {
    const rows = tracks.filter((track) => track.clock === clock), bars = barsOf(clock), rowCount = placeBars(rows, bars), whole = clocks[clock].us || 1, view = { from: 0, to: whole };
    const barOf = new Map(bars.map((bar) => [bar.call.index, bar]));
    const svg = make("svg", { class: "chart", tabindex: 0, role: "img", "aria-label": `Calls over the time of ${clocks[clock].label}. Plus and minus zoom, arrows move.` });
    const told = make("span", { class: "faint" });
    let width = LEAST_WIDTH; // in pixels, so that texts keep their size
    const x = (us) => LEFT + (us - view.from) / (view.to - view.from) * (width - LEFT - 10);
    const y = (bar) => TOP + bar.row * ROW;
    const element = (bar) => {
      const { call } = bar, label = shortName(call.name), left = Math.max(LEFT, x(bar.start)), right = Math.min(width - 10, x(bar.start + bar.us)), length = Math.max(0.8, right - left);
      const rect = make("rect", { x: left, y: y(bar) + 3, width: length, height: ROW - 8, rx: length > 6 ? 2 : 0,
        class: `call${bar.isEnqueueing ? " enqueued" : ""}${call.index === chosen ? " chosen" : ""}`,
        fill: report.callColour(label), "data-call": call.index, onclick: () => report.showCall(call.index) },
      make("title", {}, `${call.name}\n${call.kernel}, ${bar.isEnqueueing ? "enqueued in " : ""}${timeText(bar.us)}, ${call.device}`));
      return length > label.length * 6.2 + 8 ? make("g", {}, rect, make("text", { x: left + 4, y: y(bar) + 20, "pointer-events": "none", class: bar.isEnqueueing ? "name enqueued" : "name" }, label)) : rect;
    };
    const arrows = () => {
      if (!barOf.has(chosen)) return [];
      const call = calls[chosen], users = calls.filter((other) => other.sources.includes(chosen));
      const pairs = [...call.sources.map((source) => [source, chosen]), ...users.map((user) => [chosen, user.index])].map(([a, b]) => [barOf.get(a), barOf.get(b)]);
      return pairs.filter(([a, b]) => a && b).map(([a, b]) => make("path", { class: "flow",
        d: `M${x(a.start + a.us)} ${y(a) + ROW / 2}C${x(a.start + a.us) + 20} ${y(a) + ROW} ${x(b.start) - 20} ${y(b)} ${x(b.start)} ${y(b) + ROW / 2}` }));
    };
    const draw = () => {
      width = Math.max(LEAST_WIDTH, svg.clientWidth);
      const inside = bars.filter((bar) => bar.start <= view.to && bar.start + bar.us >= view.from);
      const drawn = inside.length > MOST_DRAWN ? [...inside].sort((a, b) => b.us - a.us).slice(0, MOST_DRAWN) : inside;
      const height = TOP + rowCount * ROW + 8, ticks = Array.from({ length: 7 }, (_, i) => view.from + (view.to - view.from) * i / 6);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.replaceChildren(
        ...ticks.flatMap((us, index) => [make("line", { class: "axis", x1: x(us), x2: x(us), y1: TOP - 6, y2: height }),
          make("text", { x: x(us), y: 12, "text-anchor": index === ticks.length - 1 ? "end" : "middle" }, timeText(us))]),
        ...rows.map(({ name, row }) => make("text", { x: 4, y: TOP + row * ROW + 21 }, name.length > 20 ? `${name.slice(0, 19)}…` : name, make("title", {}, name))),
        ...drawn.map(element), ...arrows());
      told.textContent = `${drawn.length} of ${bars.length} calls${data.run.left_out ? `, ${data.run.left_out} shorter ones left out` : ""}`;
    };
    const move = (from, to) => {
      const span = Math.max(whole / 20000, Math.min(whole, to - from));
      view.from = Math.max(0, Math.min(from, whole - span));
      view.to = view.from + span;
      draw();
    };
    const zoom = (factor, at = (view.from + view.to) / 2) => move(at - (at - view.from) * factor, at + (view.to - at) * factor);
    const reveal = (call) => {
      const bar = barOf.get(call), half = (view.to - view.from) / 2;
      if (bar && (bar.start < view.from || bar.start + bar.us > view.to)) move(bar.start - half, bar.start + half);
      else draw();
    };
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const bounds = svg.getBoundingClientRect(), px = (event.clientX - bounds.left) / bounds.width * width;
      zoom(Math.exp(event.deltaY / 500), view.from + (px - LEFT) / (width - LEFT - 10) * (view.to - view.from));
    }, { passive: false });
    svg.addEventListener("keydown", (event) => {
      const step = (view.to - view.from) / 5;
      if (event.key === "+" || event.key === "=") zoom(0.7);
      else if (event.key === "-") zoom(1.4);
      else if (event.key === "ArrowRight") move(view.from + step, view.to + step);
      else if (event.key === "ArrowLeft") move(view.from - step, view.to - step);
      else if (event.key === "0") move(0, whole);
      else return;
      event.preventDefault();
    });
    const tools = make("div", { class: "tools" }, make("button", { "aria-label": "Smaller", onclick: () => zoom(1.4) }, "−"), make("button", { onclick: () => move(0, whole) }, "Whole run"),
      make("button", { "aria-label": "Larger", onclick: () => zoom(0.7) }, "+"), told);
    const title = clocks.length > 1 ? [make("h2", {}, `${clocks[clock].label[0].toUpperCase()}${clocks[clock].label.slice(1)}: ${timeText(whole)}`)] : [];
    const card = make("div", { class: "card" }, ...title, tools, make("div", { class: "wide timeline" }, svg));
    return { card, draw, reveal };
  };
  const build = () => {
    charts = clocks.map((_, clock) => makeChart(clock));
    side = make("div", { class: "card" }, make("p", { class: "faint" }, "Click a call for its nodes. The wheel zooms; arrows move."));
    const note = clocks.length > 1 ? [make("p", { class: "faint note" }, "Each clock has an axis of its own: moments of two clocks have no order. Dashed bars on the host's clock enqueue work that its device times.")] : [];
    section.append(...note, ...(charts.length ? charts.map(({ card }) => card) : [make("p", {}, "No kernel ran.")]), side);
  };
  window.addEventListener("resize", () => { if (charts && !section.hidden) charts.forEach((chart) => chart.draw()); });
  report.showTimeline = () => { if (!charts) build(); charts.forEach((chart) => chart.draw()); };
  report.showCall = (index) => {
    const call = calls[index], on = clocks.length > 1 ? ` of ${clocks[call.clock].label}` : "";
    chosen = index;
    report.showTab("timeline");
    charts.forEach((chart) => chart.reveal(index));
    const list = call.of.map((node) => make("li", {}, make("button", { class: "link", onclick: () => report.showNode(node) }, nodes.name[node])));
    const words = [call.kernel, call.device, tracks[call.track].name, `${timeText(call.us)} from ${timeText(call.start)} on${on}`,
      call.own < call.us ? `${timeText(call.own)} without the calls inside` : "",
      call.enqueued ? `enqueued in ${timeText(call.enqueued.us)} from ${timeText(call.enqueued.start)} on of ${clocks[0].label}` : "",
      call.bytes ? bytesElement(call.bytes) : "", call.outputs].filter(Boolean);
    const copy = report.copies.find((row) => row.call === index);
    side.replaceChildren(make("h2", {}, call.name), make("p", { class: "faint" }, ...words.flatMap((word, place) => (place ? [" · ", word] : [word]))),
      copy ? make("p", {}, "Copies ", copy.source >= 0 ? make("button", { class: "link", onclick: () => report.showNode(copy.source) }, copy.tensor) : copy.tensor,
        ` from ${copy.from} to ${copy.to}. `, make("button", { class: "link", onclick: () => report.showTab("copies") }, "All copies")) : "",
      make("h3", {}, copy ? "For the node" : list.length ? `Nodes (${list.length})` : "A node that a pass made"), make("ul", {}, ...list));
    report.link();
  };
  report.chosenCall = () => chosen;
})();
