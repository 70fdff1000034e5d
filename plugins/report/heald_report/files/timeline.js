// The timeline of the run: a row of calls for each thread and each device's queue.
"use strict";
(() => {
  const { data, nodes, calls, make, timeText, byteText } = report;
  const section = document.getElementById("timeline"), [LEFT, ROW, TOP, WIDTH] = [140, 34, 24, 1200];
  const MOST_DRAWN = 3000; // calls in the window; the longest of more
  const view = { from: 0, to: 1, call: -1 };
  let chart = null, told = null, side = null;

  const x = (us) => LEFT + (us - view.from) / (view.to - view.from) * (WIDTH - LEFT - 10);
  const y = (track) => TOP + track * ROW;
  const bar = (call) => {
    const left = Math.max(LEFT, x(call.start)), right = Math.min(WIDTH - 10, x(call.start + call.us)), width = Math.max(0.8, right - left);
    const rect = make("rect", { x: left, y: y(call.track) + 3, width, height: ROW - 8, rx: width > 6 ? 2 : 0, class: `call${call.index === view.call ? " chosen" : ""}`,
      fill: report.callColour(call.name.slice(call.name.lastIndexOf("/") + 1)), "data-call": call.index, onclick: () => report.showCall(call.index) },
    make("title", {}, `${call.name}\n${call.kernel}, ${timeText(call.us)}, ${call.device}`));
    const label = call.name.slice(call.name.lastIndexOf("/") + 1);
    return width > label.length * 6.2 + 8 ? make("g", {}, rect, make("text", { x: left + 4, y: y(call.track) + 20, "pointer-events": "none", class: "name" }, label)) : rect;
  };
  const arrows = () => {
    const call = calls[view.call];
    if (!call) return [];
    const pairs = [...call.sources.map((source) => [calls[source], call]),
      ...calls.filter((other) => other.sources.includes(call.index)).map((other) => [call, other])];
    return pairs.map(([a, b]) => make("path", { class: "flow",
      d: `M${x(a.start + a.us)} ${y(a.track) + ROW / 2}C${x(a.start + a.us) + 20} ${y(a.track) + ROW} ${x(b.start) - 20} ${y(b.track)} ${x(b.start)} ${y(b.track) + ROW / 2}` }));
  };
  const draw = () => {
    const inside = calls.filter((call) => call.start <= view.to && call.start + call.us >= view.from);
    const drawn = inside.length > MOST_DRAWN ? [...inside].sort((a, b) => b.us - a.us).slice(0, MOST_DRAWN) : inside;
    const height = TOP + data.run.threads.length * ROW + 8;
    const ticks = Array.from({ length: 7 }, (_, i) => view.from + (view.to - view.from) * i / 6);
    chart.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    chart.replaceChildren(
      ...ticks.flatMap((us, index) => [make("line", { class: "axis", x1: x(us), x2: x(us), y1: TOP - 6, y2: height }),
        make("text", { x: x(us), y: 12, "text-anchor": index === ticks.length - 1 ? "end" : "middle" }, timeText(us))]),
      ...data.run.threads.map((name, track) => make("text", { x: 4, y: y(track) + 21 }, name.length > 20 ? `${name.slice(0, 19)}…` : name, make("title", {}, name))),
      ...drawn.map(bar), ...arrows());
    told.textContent = `${drawn.length} of ${calls.length} calls${data.run.left_out ? `, ${data.run.left_out} shorter ones left out` : ""}`;
  };
  const move = (from, to) => {
    const whole = data.run.us || 1, span = Math.max(whole / 20000, Math.min(whole, to - from));
    view.from = Math.max(0, Math.min(from, whole - span));
    view.to = view.from + span;
    draw();
  };
  const zoom = (factor, at = (view.from + view.to) / 2) => move(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const build = () => {
    chart = make("svg", { class: "chart", tabindex: 0, role: "img", "aria-label": "Calls over time. Plus and minus zoom, arrows move." });
    told = make("span", { class: "faint" });
    side = make("div", { class: "card" }, make("p", { class: "faint" }, "Click a call for its nodes. The wheel zooms; arrows move."));
    chart.addEventListener("wheel", (event) => {
      event.preventDefault();
      const bounds = chart.getBoundingClientRect(), px = (event.clientX - bounds.left) / bounds.width * WIDTH;
      zoom(Math.exp(event.deltaY / 500), view.from + (px - LEFT) / (WIDTH - LEFT - 10) * (view.to - view.from));
    }, { passive: false });
    chart.addEventListener("keydown", (event) => {
      const step = (view.to - view.from) / 5;
      if (event.key === "+" || event.key === "=") zoom(0.7);
      else if (event.key === "-") zoom(1.4);
      else if (event.key === "ArrowRight") move(view.from + step, view.to + step);
      else if (event.key === "ArrowLeft") move(view.from - step, view.to - step);
      else if (event.key === "0") move(0, data.run.us);
      else return;
      event.preventDefault();
    });
    section.append(make("div", { class: "tools" }, make("button", { onclick: () => zoom(1.4) }, "−"), make("button", { onclick: () => move(0, data.run.us) }, "Whole run"),
      make("button", { onclick: () => zoom(0.7) }, "+"), told), make("div", { class: "card wide" }, chart), side);
    Object.assign(view, { from: 0, to: data.run.us || 1 });
  };
  report.showTimeline = () => { if (!chart) build(); draw(); };
  report.showCall = (index) => {
    const call = calls[index];
    view.call = index;
    report.showTab("timeline");
    if (call.start < view.from || call.start + call.us > view.to) move(call.start - (view.to - view.from) / 2, call.start + (view.to - view.from) / 2);
    else draw();
    const list = call.of.map((node) => make("li", {}, make("button", { class: "link", onclick: () => report.showNode(node) }, nodes.name[node])));
    side.replaceChildren(make("h2", {}, call.name), make("p", { class: "faint" }, [call.kernel, call.device, data.run.threads[call.track], `${timeText(call.us)} from ${timeText(call.start)} on`,
      call.bytes ? byteText(call.bytes) : "", call.outputs].filter(Boolean).join(" · ")),
    make("h3", {}, list.length ? `Nodes (${list.length})` : "A node that a pass made"), make("ul", {}, ...list));
    report.link();
  };
  report.chosenCall = () => view.call;
})();
