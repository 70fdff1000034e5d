// The roofline: each call by its operations a byte and its rate, under the rates that the machine reaches.
"use strict";
(() => {
  const { data, calls, make, timeText, bytesElement, countText } = report;
  const HEIGHT = 420, [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 16, 44];
  const roof = data.run && data.run.roofline;

  const rowsOf = () => calls.filter((call) => call.us > 0 && (call.flops || call.moved)).map((call) => {
    const intensity = call.moved ? call.flops / call.moved : 0, rate = call.flops / call.us / 1e3, bandwidth = call.moved / call.us / 1e3;
    const isBound = roof.devices.includes(call.device), byMemory = intensity * roof.gbs < roof.gflops;
    // The rates that a call with this many operations a byte reaches under the roof; 0 where no roof was measured.
    const attainable = isBound ? Math.min(roof.gflops, intensity * roof.gbs) : 0;
    const attainableBandwidth = isBound ? Math.min(roof.gbs, intensity ? roof.gflops / intensity : Infinity) : 0;
    const part = byMemory ? bandwidth / roof.gbs : rate / roof.gflops;
    return { call, intensity, rate, bandwidth, attainable, attainableBandwidth, bound: isBound ? (byMemory ? "memory" : "arithmetic") : "", part: isBound ? part : 0 };
  });
  const decades = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const tick = (power) => (power >= -2 && power <= 3 ? String(Number((10 ** power).toFixed(2))) : `1e${power}`);
  const chart = (rows) => {
    const WIDTH = report.chartWidth("roofline", 640);
    const points = rows.filter((row) => row.intensity > 0 && row.bound), ridge = roof.gflops / roof.gbs;
    const [x0, x1] = decades([...points.map((row) => row.intensity), ridge / 2, ridge * 2]);
    const [y0, y1] = decades([...points.map((row) => row.rate), roof.gflops * 1.5, Math.min(roof.gflops, 10 ** x0 * roof.gbs)]);
    const x = (value) => LEFT + (Math.log10(value) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + (y1 - Math.log10(value)) / (y1 - y0) * (HEIGHT - TOP - BOTTOM);
    const most = Math.max(1e-9, ...points.map((row) => row.call.us)), grid = [];
    for (let power = x0; power <= x1; power += 1)
      grid.push(make("line", { x1: x(10 ** power), x2: x(10 ** power), y1: TOP, y2: HEIGHT - BOTTOM, class: "axis" }),
        make("text", { x: x(10 ** power), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, tick(power)));
    for (let power = y0; power <= y1; power += 1)
      grid.push(make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(10 ** power), y2: y(10 ** power), class: "axis" }),
        make("text", { x: LEFT - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, tick(power)));
    const low = Math.max(10 ** x0, 10 ** y0 / roof.gbs), isTight = x(10 ** x1) - x(ridge) < 150;
    return make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": "Rate of each call by its operations a byte" }, ...grid,
      make("path", { d: `M${x(low)} ${y(low * roof.gbs)}L${x(ridge)} ${y(roof.gflops)}L${x(10 ** x1)} ${y(roof.gflops)}`, class: "roof" }),
      ...points.map((row) => make("circle", { class: "point", cx: x(row.intensity), cy: y(row.rate), r: 3 + 9 * Math.sqrt(row.call.us / most),
        fill: report.callColour(row.call.kernel), "data-call": row.call.index, onclick: () => report.showCall(row.call.index) },
      make("title", {}, `${row.call.name}\n${row.call.kernel}, ${timeText(row.call.us)}\n${row.rate.toPrecision(3)} GFLOP/s, ${row.intensity.toPrecision(3)} operations a byte`))),
      make("text", { class: "strong", x: isTight ? WIDTH - RIGHT : x(ridge) + 8, y: y(roof.gflops) - 6, "text-anchor": isTight ? "end" : "start" }, `${roof.gflops.toPrecision(3)} GFLOP/s`),
      make("text", { class: "strong", x: x(Math.sqrt(low * ridge)) - 8, y: y(Math.sqrt(low * ridge) * roof.gbs) - 6, "text-anchor": "end" }, `${roof.gbs.toPrecision(3)} GB/s`),
      make("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "floating-point operations a byte"),
      make("text", { x: -(TOP + HEIGHT - BOTTOM) / 2, y: 14, transform: "rotate(-90)", "text-anchor": "middle" }, "GFLOP/s"));
  };
  const legend = (rows) => {
    const times = new Map();
    for (const { call } of rows) times.set(call.kernel, (times.get(call.kernel) || 0) + call.us);
    return make("p", { class: "legend" }, ...[...times].sort((a, b) => b[1] - a[1]).slice(0, 10).map(([kernel]) => make("span", {},
      make("svg", { viewBox: "0 0 10 10" }, make("circle", { cx: 5, cy: 5, r: 5, fill: report.callColour(kernel) })), kernel)));
  };
  report.fillers.roofline = () => {
    const rows = rowsOf(), rate = (value) => value.toPrecision(3), rateOrNone = (value) => (value ? rate(value) : ""), percent = (part) => (part ? `${(part * 100).toFixed(1)} %` : "");
    const drawn = rows.filter((row) => row.intensity > 0 && row.bound), number = (show) => ({ number: true, show });
    const others = roof.others.length ? ` ${roof.others.join(", ")}: no roof was measured, so ${roof.others.length > 1 ? "their" : "its"} calls have rates and no bound.` : "";
    return [make("div", { class: "card" }, make("h2", {}, "Calls under the roof of this machine's processors"),
      make("p", { class: "faint" }, `The roof is that of ${roof.devices.join(" and ") || "host memory"} on the machine that made this page: ${rate(roof.gflops)} GFLOP/s and ${rate(roof.gbs)} GB/s. `
        + `These are the fastest product by ${roof.product} and the fastest copy by ${roof.copy}, read and written, when the page was made.${others}`),
      make("p", { class: "faint" }, "Operations are those of the ops as they are defined: a kernel that needs fewer multiplications, or whose data stays in a cache, may exceed the roof."),
      ...(drawn.length ? [make("div", { class: "wide roofline" }, chart(rows)), legend(drawn)] : [make("p", {}, "The work of no call on host memory is known.")])),
    make("div", { class: "card" }, make("h2", {}, "Rates of calls"), ...report.table(rows, [
      ["node", (r) => r.call.name, { link: (r) => () => report.showCall(r.call.index) }], ["kernel", (r) => r.call.kernel], ["device", (r) => r.call.device],
      ...report.clockColumns((r) => r.call.clock), ["time", (r) => r.call.us, number(timeText)], ["flop", (r) => r.call.flops, number(countText)],
      ["bytes", (r) => r.call.moved, number(bytesElement)], ["flop/byte", (r) => r.intensity, number(rate)],
      ["GFLOP/s", (r) => r.rate, number(rate)], ["attainable GFLOP/s", (r) => r.attainable, number(rateOrNone)],
      ["GB/s", (r) => r.bandwidth, number(rate)], ["attainable GB/s", (r) => r.attainableBandwidth, number(rateOrNone)],
      ["bound by", (r) => r.bound], ["of the roof", (r) => r.part, number(percent)]], { sort: [report.clocks.length > 1 ? 4 : 3, -1], name: "roofline" }))];
  };
})();
