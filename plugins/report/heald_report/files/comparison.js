// The comparison: the first tensor that differs, the parts where the graphs differ side by side, and matched nodes.
"use strict";
(() => {
  const { data, nodes, make, timeText } = report;
  const compared = data.comparison;
  if (!compared) return;
  const [first, second] = compared.titles, byNode = new Map(compared.graph.touched);
  report.comparedChanges = () => byNode;

  const toNode = (node) => (node >= 0 ? () => report.showNode(node) : null);
  const link = (node, label) => make("button", { class: "link", onclick: toNode(node) }, label);
  const figure = (line) => (line === "inf" ? Infinity : Number(line));
  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const values = () => {
    if (compared.note) return [make("p", {}, compared.note)];
    if (!compared.beyond) {
      const most = compared.closest ? `None differs beyond a thousandth of its standard deviation; the largest difference is ${compared.closest.toPrecision(3)} of it.` : "All are equal.";
      return [make("p", {}, `${plural(compared.compared, "tensor")} compared for the same inputs. ${most}`)];
    }
    const [node, tensor, other, op, largest, where, ours, theirs, relative] = compared.tensors[0];
    return [make("p", {}, `${compared.beyond} of ${plural(compared.compared, "tensor")} differ for the same inputs. The first in the order of the graph: `,
      link(node, tensor), other === tensor ? "" : ` (${other})`, ` of ${op}. `,
      largest === null ? `${ours} and ${theirs}.` : `The largest difference is ${largest} at ${where}: ${ours} and ${theirs}; ${relative} standard deviations.`),
    ...report.table(compared.tensors, [["tensor", (r) => r[1], { link: (r) => toNode(r[0]) }], ["op", (r) => r[3]],
      ["largest difference", (r) => (r[4] === null ? -1 : figure(r[4])), { number: true, show: (value) => (value < 0 ? "" : String(value)) }],
      ["at", (r) => r[5]], [first, (r) => r[6]], [second, (r) => r[7]], ["standard deviations", (r) => figure(r[8]), { number: true, show: String }]], { name: "tensors" })];
  };
  const sideBySide = (pattern, index) => make("div", { class: "card" }, make("h2", {}, pattern.count > 1 ? `Difference ${index + 1}, ${pattern.count} times` : `Difference ${index + 1}`),
    make("div", { class: "pair" }, ...[["before", first], ["after", second]].map(([side, title]) => make("div", {}, make("h3", {}, title),
      make("div", { class: "wide" }, report.changePicture(pattern.picture, side))))),
    report.changeNotes(pattern) ? make("p", { class: "faint" }, report.changeNotes(pattern)) : null);
  const pairs = () => {
    const [NODE, NAME, DEVICE, PACK, OTHER_DEVICE, OTHER_PACK, US, OTHER_US] = [0, 1, 2, 3, 4, 5, 6, 7];
    const columns = [["node", (r) => nodes.name[r[NODE]], { link: (r) => toNode(r[NODE]) }], [`name in ${second}`, (r) => r[NAME]],
      [`device, ${first}`, (r) => r[DEVICE]], [`device, ${second}`, (r) => r[OTHER_DEVICE]], [`pack, ${first}`, (r) => r[PACK]], [`pack, ${second}`, (r) => r[OTHER_PACK]],
      [`time, ${first}`, (r) => r[US], { number: true, show: timeText }], [`time, ${second}`, (r) => r[OTHER_US], { number: true, show: timeText }]];
    return report.table(compared.pairs, columns.filter(([, value]) => compared.pairs.some(value)), { name: "nodes" });
  };
  const clockNote = () => (compared.clocks.length ? [make("p", { class: "faint" },
    `${compared.clocks.join(", ")}: by ${compared.clocks.length > 1 ? "clocks" : "a clock"} of ${compared.clocks.length > 1 ? "their" : "its"} own. Such times have no difference from the host's.`)] : []);
  const more = (count) => (count ? make("p", { class: "faint" }, `and ${count} more`) : null);
  report.fillers.comparison = () => {
    const graph = compared.graph, isSame = !compared.fields.length;
    const words = [`${graph.before} and ${graph.after} nodes`, `${compared.equal} equal`, graph.rewritten ? `${graph.rewritten} differ` : "",
      graph.removed ? `${graph.removed} only in ${first}` : "", graph.added ? `${graph.added} only in ${second}` : "",
      compared.renamed ? `${compared.renamed} matched by structure under another name` : ""].filter(Boolean);
    return [make("div", { class: "card" }, make("h2", {}, `${first} and ${second}`), make("p", {}, `${words.join(", ")}. `),
      graph.touched.length ? make("p", {}, make("button", { onclick: () => { document.getElementById("colour").value = "comparison"; report.showTab("graph"); report.colourBy("comparison"); } }, "Show in the graph")) : null),
    isSame ? null : make("div", { class: "card" }, make("h2", {}, "Fields that differ"), ...report.table(compared.fields, ["change", "kind", "name", "field", first, second].map((title, index) => [title, (r) => r[index]]), { name: "fields" }), more(compared.more_fields)),
    make("div", { class: "card" }, make("h2", {}, "Values"), ...values()),
    ...graph.patterns.map(sideBySide), graph.more ? make("p", { class: "faint" }, `and ${graph.more} rarer differences`) : null,
    compared.pairs.length ? make("div", { class: "card" }, make("h2", {}, "Matched nodes"), ...clockNote(), ...pairs(), more(compared.more_pairs)) : null];
  };
})();
