// The copies between memories: totals by pair of memories, and a row for each copy.
"use strict";
(() => {
  const { data, copies, nodes, make, timeText, bytesElement, text } = report;
  if (!copies.length) return;
  const toNode = (node) => (node >= 0 ? () => report.showNode(node) : null);
  const nameOf = (node) => (node >= 0 ? nodes.name[node] : "");
  const rate = (bytes, us) => (us ? bytes / us / 1e3 : 0), rateText = (value) => (value ? value.toPrecision(3) : "");
  const size = { number: true, show: bytesElement }, time = { number: true, show: timeText }, speed = { number: true, show: rateText };
  const pairColumns = () => [["from", (r) => r.from], ["to", (r) => r.to], ["copies", (r) => r.count, { number: true }], ["bytes", (r) => r.bytes, size],
    ...report.clockColumns((r) => r.clock), ["time", (r) => r.us, time], ["GB/s", (r) => rate(r.bytes, r.us), speed]];
  const copyColumns = () => [["tensor", (r) => r.tensor, { link: (r) => toNode(r.source) }], ["from", (r) => r.from], ["to", (r) => r.to],
    ["for the node", (r) => nameOf(r.consumer), { link: (r) => toNode(r.consumer) }], ["bytes", (r) => r.bytes, size],
    ...report.clockColumns((r) => r.clock), ["time", (r) => r.us, { ...time, link: (r) => (r.call >= 0 ? () => report.showCall(r.call) : null) }],
    ["GB/s", (r) => rate(r.bytes, r.us), speed]];
  report.fillers.copies = () => {
    const pairs = data.run.copies.pairs.map(([from, to, clock, count, bytes, us]) => ({ from: text(from), to: text(to), clock, count, bytes, us }));
    return [make("div", { class: "card" }, make("h2", {}, "By pair of memories"), ...report.table(pairs, pairColumns(), { sort: [3, -1], name: "copies-by-pair" })),
      make("div", { class: "card" }, make("h2", {}, "Copies"), make("p", { class: "faint" }, "A tensor leads to the node that makes it, a time to the timeline."),
        ...report.table(copies, copyColumns(), { sort: [4, -1], placeholder: "Filter the copies", name: "copies" }),
        data.run.copies.more ? make("p", { class: "faint" }, `and ${data.run.copies.more} smaller ones`) : null)];
  };
})();
