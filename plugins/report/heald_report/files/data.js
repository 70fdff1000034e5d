// The data of the page, and sums over it: times and bytes of nodes and of pictures, consumers of nodes.
// Times of two clocks are never added: a sum of times is a list, with an entry for each clock of the run.
"use strict";
const report = {};
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const nodes = data.nodes, count = nodes.name.length;
  const text = (number) => data.texts[number];
  const KIND = { NODE: 0, SCOPE: 1, SOURCE: 2, TARGET: 3 };
  const pictures = data.pictures.map(([scope, fn, parent, width, height, boxes, edges]) => ({
    scope, fn, parent, width, height,
    boxes: boxes.map(([kind, label, ref, x, y, w, h, folded, inner]) => ({ kind, label, ref, x, y, w, h, folded, inner })),
    edges: edges.map(([from, to, tensors, flags, bends, copies = []]) => ({ from, to, tensors, flags, bends, copies })),
  }));
  // The name of a call inside a loop has the names of all loops around. Its node's own name is enough.
  const shortName = (name, node) => (node >= 0 && name.endsWith(`/${nodes.name[node]}`) ? nodes.name[node] : name);
  const calls = (data.run ? data.run.calls : []).map(
    ([start, us, track, name, kernel, device, outputs, of, sources, bytes, work, enqueued], index) =>
      ({ index, start, us, track, name: shortName(name, of.length ? of[0] : -1), kernel: text(kernel), device: text(device), outputs: text(outputs), of, sources,
         bytes, flops: work ? work[0] : 0, moved: work ? work[1] : 0, clock: data.run.tracks[track][1],
         enqueued: enqueued && { start: enqueued[0], us: enqueued[1], track: enqueued[2] } }));
  // A loop or a branch is a call of the host around the calls inside it. Its own time is the rest: sums count none twice.
  const ROUNDING = 0.03; // microseconds by which rounded times of touching calls may overlap
  const around = []; // by track, the open calls around the next one
  for (const call of [...calls].sort((a, b) => a.start - b.start || b.us - a.us)) {
    const open = around[call.track] = around[call.track] || [], last = () => open[open.length - 1];
    while (open.length && last().start + last().us + ROUNDING < call.start + call.us) open.pop();
    call.own = call.us;
    if (open.length) last().own = Math.max(0, last().own - call.us);
    if (call.device === "host") open.push(call);
  }
  const isCopy = (call) => call.kernel === "heald.copy";
  const copies = (data.run ? data.run.copies.rows : []).map(([tensor, source, consumer, from, to, bytes, us, clock, call]) =>
    ({ tensor, source, consumer, from: text(from), to: text(to), bytes, us, clock, call }));
  const clocks = data.run ? data.run.clocks.map(([name, us]) => ({ name, us, label: `${name === "host" ? "the host" : name}'s clock` })) : [];
  const zeros = () => clocks.map(() => 0);

  const consumers = Array.from({ length: count }, () => []);
  nodes.inputs.forEach((sources, node) => sources.forEach((source) => consumers[source].push(node)));

  const callers = new Map(); // the root picture of a function to the nodes that call it
  for (const [node, roots] of Object.entries(data.calls))
    for (const root of roots) callers.set(root, [...(callers.get(root) || []), Number(node)]);

  // A call counts once for each picture around one of its nodes, and for each node that it does.
  const ofNode = Array.from({ length: count }, () => ({ us: zeros(), bytes: 0, copyUs: zeros(), copied: 0, calls: [] }));
  const ofPicture = pictures.map(() => ({ us: zeros(), bytes: 0, copyUs: zeros(), copied: 0, nodes: 0 }));
  const addCall = (sums, call) => {
    if (isCopy(call)) { sums.copyUs[call.clock] += call.own; sums.copied += call.bytes; } else { sums.us[call.clock] += call.own; sums.bytes += call.bytes; }
  };
  const picturesAround = (node) => {
    const result = [];
    for (let at = data.places[node][0]; at >= 0; at = pictures[at].parent) result.push(at);
    return result;
  };
  for (const call of calls) {
    const touched = new Set();
    for (const node of call.of) {
      addCall(ofNode[node], call);
      ofNode[node].calls.push(call.index);
      picturesAround(node).forEach((picture) => touched.add(picture));
    }
    for (const picture of touched) addCall(ofPicture[picture], call);
  }
  const members = pictures.map(() => []);
  for (let node = 0; node < count; node += 1)
    for (const picture of picturesAround(node)) { ofPicture[picture].nodes += 1; members[picture].push(node); }

  const units = (value, names, step) => {
    let index = 0;
    while (value >= step * 0.9995 && index < names.length - 1) { value /= step; index += 1; }
    return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toPrecision(3)} ${names[index]}`;
  };

  const timeText = (us) => units(us, ["µs", "ms", "s"], 1000);
  const byteText = (bytes) => units(bytes, ["bytes", "kB", "MB", "GB"], 1000);
  Object.assign(report, {
    data, nodes, count, text, shortName, KIND, pictures, calls, copies, clocks, isCopy, consumers, callers, ofNode, ofPicture, members,
    timeText, byteText,
    // The times of a list by clock; with the names of the clocks where the run has several.
    timesText: (list) => list.map((us, clock) => (us ? `${timeText(us).replace(" ", "\u00a0")}${clocks.length > 1 ? ` on ${clocks[clock].label}` : ""}` : "")).filter(Boolean).join(", "),
    // The largest part that a list has of the times of its clocks, for an order of nodes.
    timeShare: (list) => Math.max(0, ...list.map((us, clock) => us / (clocks[clock].us || 1))),
    countText: (value) => units(value, ["", "k", "M", "G", "T"], 1000),
    exactBytes: (bytes) => `${String(bytes).replace(/\B(?=(\d{3})+$)/g, " ")} byte${bytes === 1 ? "" : "s"}`,
    // Bytes in rounded units, with the exact number as a tooltip and for readers of the screen.
    bytesElement(bytes) {
      const shown = byteText(bytes), exact = report.exactBytes(bytes);
      if (bytes < 1000) return report.make("span", {}, shown);
      return report.make("span", { class: "exact", title: exact }, report.make("span", { "aria-hidden": "true" }, shown), report.make("span", { class: "unseen" }, exact));
    },
    // An element with attributes and children. Texts become text nodes, never markup.
    make(name, attributes = {}, ...children) {
      const svg = ["svg", "g", "rect", "path", "text", "title", "line", "polygon", "circle"].includes(name);
      const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
      for (const [key, value] of Object.entries(attributes))
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
      element.append(...children.filter((child) => child !== null && child !== undefined));
      return element;
    },
  });
})();
