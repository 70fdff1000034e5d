// The data of the page, and sums over it: times and bytes of nodes and of pictures, consumers of nodes.
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
  const calls = (data.run ? data.run.calls : []).map(
    ([start, us, track, name, kernel, device, outputs, of, sources, bytes, work], index) =>
      ({ index, start, us, track, name, kernel: text(kernel), device: text(device), outputs: text(outputs), of, sources,
         bytes, flops: work ? work[0] : 0, moved: work ? work[1] : 0 }));

  const consumers = Array.from({ length: count }, () => []);
  nodes.inputs.forEach((sources, node) => sources.forEach((source) => consumers[source].push(node)));

  const callers = new Map(); // the root picture of a function to the nodes that call it
  for (const [node, roots] of Object.entries(data.calls))
    for (const root of roots) callers.set(root, [...(callers.get(root) || []), Number(node)]);

  // A call counts once for each picture around one of its nodes, and for each node that it does.
  const ofNode = Array.from({ length: count }, () => ({ us: 0, bytes: 0, calls: [] }));
  const ofPicture = pictures.map(() => ({ us: 0, bytes: 0, nodes: 0 }));
  const around = (node) => {
    const result = [];
    for (let at = data.places[node][0]; at >= 0; at = pictures[at].parent) result.push(at);
    return result;
  };
  for (const call of calls) {
    const touched = new Set();
    for (const node of call.of) {
      ofNode[node].us += call.us;
      ofNode[node].bytes += call.bytes;
      ofNode[node].calls.push(call.index);
      around(node).forEach((picture) => touched.add(picture));
    }
    for (const picture of touched) {
      ofPicture[picture].us += call.us;
      ofPicture[picture].bytes += call.bytes;
    }
  }
  const members = pictures.map(() => []);
  for (let node = 0; node < count; node += 1)
    for (const picture of around(node)) { ofPicture[picture].nodes += 1; members[picture].push(node); }

  const units = (value, names, step) => {
    let index = 0;
    while (value >= step * 0.9995 && index < names.length - 1) { value /= step; index += 1; }
    return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toPrecision(3)} ${names[index]}`;
  };

  Object.assign(report, {
    data, nodes, count, text, KIND, pictures, calls, consumers, callers, ofNode, ofPicture, members,
    timeText: (us) => units(us, ["µs", "ms", "s"], 1000),
    countText: (value) => units(value, ["", "k", "M", "G", "T"], 1000),
    byteText: (bytes) => units(bytes, ["bytes", "kB", "MB", "GB"], 1000),
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
