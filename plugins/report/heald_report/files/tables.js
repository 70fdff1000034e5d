// Tables in pages of rows, sorted and filtered: the placement, the kernels, and the memory at the peak.
"use strict";
(() => {
  const { data, nodes, count, text, calls, clocks, isCopy, make, timeText, byteText, bytesElement, exactBytes } = report;
  const ROWS = 200;

  // A spreadsheet runs a text that begins like a formula, so such a text gets an apostrophe. Numbers stay as they are.
  const FORMULA = /^[=+\-@\t\r\n]/;
  const csvCell = (value, isNumber) => {
    if (isNumber) return String(value);
    const line = String(value), safe = FORMULA.test(line.trimStart()) || FORMULA.test(line) ? `'${line}` : line;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  report.csvText = (columns, rows) => [columns.map(([title]) => csvCell(title, false)),
    ...rows.map((row) => columns.map(([, value, options = {}]) => csvCell(value(row), options.number)))]
    .map((cells) => `${cells.join(",")}\r\n`).join("");

  // columns: [title, value of a row, {number, show, link}]; `show` returns a text or an element.
  const table = (rows, columns, { filter = "", sort = null, placeholder = "Filter", name = "table" } = {}) => {
    const state = { filter, sort, page: 0 };
    const body = make("div", { class: "wide" }), told = make("span", { class: "faint" });
    const back = make("button", { onclick: () => { state.page -= 1; show(); } }, "‹");
    const on = make("button", { onclick: () => { state.page += 1; show(); } }, "›");
    back.setAttribute("aria-label", "Rows before");
    on.setAttribute("aria-label", "Rows behind");
    const input = make("input", { type: "search", placeholder, "aria-label": placeholder,
      oninput: () => { state.filter = input.value; state.page = 0; show(); } });
    const lines = rows.map((row) => columns.map(([, value]) => String(value(row))).join("\n").toLowerCase());
    const chosen = () => {
      const wanted = state.filter.toLowerCase();
      const kept = rows.filter((_, index) => lines[index].includes(wanted));
      if (state.sort) {
        const [column, sign] = state.sort, value = columns[column][1];
        kept.sort((a, b) => sign * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
      }
      return kept;
    };
    const cell = ([, value, options = {}], row) => {
      const content = options.show ? options.show(value(row)) : String(value(row));
      const inner = options.link && options.link(row) ? make("button", { class: "link", onclick: options.link(row) }, content) : content;
      return make("td", { class: options.number ? "number" : null }, inner);
    };
    const show = () => {
      const kept = chosen(), start = state.page * ROWS;
      told.textContent = kept.length > ROWS ? `${start + 1} to ${Math.min(kept.length, start + ROWS)} of ${kept.length}` : `${kept.length} row${kept.length === 1 ? "" : "s"}`;
      back.disabled = state.page === 0;
      on.disabled = start + ROWS >= kept.length;
      back.hidden = on.hidden = kept.length <= ROWS;
      const head = make("tr", {}, ...columns.map(([title, , options = {}], index) => make("th",
        { class: options.number ? "number" : null, "aria-sort": state.sort && state.sort[0] === index ? (state.sort[1] > 0 ? "ascending" : "descending") : null },
        make("button", { onclick: () => { state.sort = [index, state.sort && state.sort[0] === index ? -state.sort[1] : options.number ? -1 : 1]; show(); } },
          `${title}${state.sort && state.sort[0] === index ? (state.sort[1] > 0 ? "\u00a0▲" : "\u00a0▼") : ""}`))));
      body.replaceChildren(make("table", {}, head, ...kept.slice(start, start + ROWS).map((row) =>
        make("tr", {}, ...columns.map((column) => cell(column, row))))));
    };
    show();
    const save = make("button", { onclick: () => report.save(new Blob([report.csvText(columns, chosen())], { type: "text/csv" }), `${name}.csv`) }, "CSV");
    return [make("div", { class: "tools" }, input, told, back, on, save), body];
  };

  report.table = table;
  const nodesText = (number) => `${number} node${number === 1 ? "" : "s"}`;
  const MOST_LINES = 8;
  // The placement in lines: [number of nodes, device or pack, rule or reason], the commonest first.
  const SUMMARY = { placed: ["Devices", (subject, why) => ` on ${subject}: ${why}`], kernels: ["Kernels", (subject, why) => ` by ${subject}: ${why}`],
    lost: ["Packs that lost", (subject, why) => `: ${subject}, ${why}`], refused: ["Refusals", (subject, why) => `: ${subject}, ${why}`] };
  const summaryCards = () => [make("div", { class: "card summary" }, ...Object.entries(SUMMARY).flatMap(([part, [title, words]]) => {
    const lines = data.placement[part], items = lines.map(([number, subject, why]) => make("li", {}, make("b", {}, nodesText(number)), words(subject, why)));
    return lines.length ? [make("div", {}, make("h3", {}, title), make("ul", {}, ...items.slice(0, MOST_LINES)), items.length > MOST_LINES
      ? make("details", {}, make("summary", {}, `and ${items.length - MOST_LINES} more`), make("ul", {}, ...items.slice(MOST_LINES))) : null)] : [];
  }))];
  report.fillers = {};
  const toNode = (node) => (node >= 0 ? () => report.showNode(node) : null);
  const fill = {
    placement() {
      const rows = Array.from({ length: count }, (_, node) => node);
      return [...summaryCards(), ...table(rows, [
        ["node", (node) => nodes.name[node], { link: toNode }],
        ["op", (node) => text(nodes.op[node])], ["requested", (node) => text(nodes.requested[node])],
        ["device", (node) => text(nodes.device[node])], ["reason", (node) => text(nodes.reason[node])],
        ["pack", (node) => text(nodes.pack[node])], ["kernel by", (node) => text(nodes.rule[node])],
        ["packs that lost", (node) => text(nodes.lost[node])], ["refused", (node) => text(nodes.refused[node])],
      ].filter(([title, value]) => ["node", "op", "device"].includes(title) || rows.some((row) => value(row))), { placeholder: "Filter the placement", name: "placement" })];
    },
    kernels() {
      const kernelCalls = calls.filter((call) => !isCopy(call)), totals = clocks.map((_, clock) => calls.reduce((sum, call) => sum + (call.clock === clock ? call.own : 0), 0) || 1);
      const groups = new Map();
      for (const call of calls) {
        const key = `${call.kernel}\n${call.device}\n${call.clock}`, group = groups.get(key) || { kernel: call.kernel, device: call.device, clock: call.clock, calls: 0, own: 0 };
        group.calls += 1;
        group.own += call.own;
        groups.set(key, group);
      }
      const share = ["share", (row) => row.own / totals[row.clock], { number: true, show: (part) => `${(part * 100).toFixed(1)} %` }];
      const words = [clocks.length > 1 ? "A share is of the time of all calls on the same clock." : "",
        calls.some((call) => call.own < call.us) ? "Loops and branches count without the calls inside them." : ""].filter(Boolean).join(" ");
      const note = () => (words ? make("p", { class: "faint" }, words) : null);
      return [make("div", { class: "card" }, make("h2", {}, "By kernel"), note(), ...table([...groups.values()], [["kernel", (g) => g.kernel], ["device", (g) => g.device],
        ["calls", (g) => g.calls, { number: true }], ...report.clockColumns((g) => g.clock), ["time", (g) => g.own, { number: true, show: timeText }], share],
      { sort: [clocks.length > 1 ? 5 : 4, -1], name: "kernels" })),
      make("div", { class: "card" }, make("h2", {}, "Slowest calls"), note(), ...table(kernelCalls, [
        ["node", (c) => c.name, { link: (c) => () => report.showCall(c.index) }], ["kernel", (c) => c.kernel], ["device", (c) => c.device],
        ["nodes", (c) => c.of.length, { number: true }], ...report.clockColumns((c) => c.clock), ["time", (c) => c.own, { number: true, show: timeText }],
        share, ["results", (c) => c.outputs]], { sort: [clocks.length > 1 ? 6 : 5, -1], name: "calls" }))];
    },
    memory() {
      return data.run.memory.length ? data.run.memory.flatMap(memoryCards) : [make("p", {}, "No kernel ran.")];
    },
  };
  // The width of a chart in a card of this tab, in pixels: so its texts have the size of the page's.
  report.chartWidth = (tab, least) => Math.max(least, document.getElementById(tab).clientWidth - 68);
  // The column of the clock, where the run has several.
  report.clockColumns = (clockOf) => (clocks.length > 1 ? [["clock", (row) => clocks[clockOf(row)].name]] : []);
  const memoryChart = (memory) => {
    const [width, height, end] = [report.chartWidth("memory", 480), 200, clocks[memory.clock].us || 1], top = memory.peak || 1;
    const x = (us) => 60 + us / end * (width - 70), y = (bytes) => height - 24 - bytes / top * (height - 44);
    let line = `M${x(0)} ${y(0)}`, before = 0;
    for (const [us, bytes] of memory.samples) { line += `L${x(us)} ${y(before)}L${x(us)} ${y(bytes)}`; before = bytes; }
    return make("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
      "aria-label": `Bytes of ${memory.memory} over the time of ${clocks[memory.clock].label}. Peak: ${exactBytes(memory.peak)}` },
    make("line", { x1: 60, x2: width - 10, y1: y(0), y2: y(0), class: "axis" }), make("line", { x1: 60, x2: width - 10, y1: y(top), y2: y(top), class: "axis" }),
    make("path", { d: `${line}L${x(end)} ${y(0)}Z`, class: "area" }), make("path", { d: line, class: "curve" }),
    make("line", { x1: x(memory.peak_us), x2: x(memory.peak_us), y1: y(top), y2: y(0), class: "curve" }),
    make("text", { x: 54, y: y(top) + 4, "text-anchor": "end" }, byteText(top), make("title", {}, exactBytes(top))), make("text", { x: 54, y: y(0) + 4, "text-anchor": "end" }, "0"),
    make("text", { x: 60, y: height - 6 }, "0"), make("text", { x: width - 10, y: height - 6, "text-anchor": "end" }, `${timeText(end)} of ${clocks[memory.clock].label}`));
  };
  const memoryCards = (memory) => [make("div", { class: "card" },
    make("h2", {}, `${memory.memory[0].toUpperCase()}${memory.memory.slice(1)}: peak `, bytesElement(memory.peak), ` at ${timeText(memory.peak_us)} of ${clocks[memory.clock].label}`),
    make("p", { class: "faint" }, `Results of kernels and copies, until their last consumer ends. Weights and inputs are not among them. ${memory.clock
      ? "A result that another clock's call reads counts to the end." : clocks.length > 1 ? "A copy from a device counts from its enqueueing on." : ""}`), make("div", { class: "wide memory" }, memoryChart(memory))),
  make("div", { class: "card" }, make("h2", {}, `Alive at the peak of ${memory.memory}`), ...table(memory.holders, [
    ["node", (r) => report.shortName(r[0], r[2]), { link: (r) => (r[3] >= 0 ? () => report.showCall(r[3]) : toNode(r[2])) }],
    ["bytes", (r) => r[1], { number: true, show: bytesElement }],
    ["share", (r) => r[1] / (memory.peak || 1), { number: true, show: (part) => `${(part * 100).toFixed(1)} %` }]], { name: "memory" }),
  memory.more ? make("p", { class: "faint" }, `and ${memory.more} smaller ones`) : null)];
  const filled = new Set();
  report.fillTable = (name) => {
    const filler = fill[name] || report.fillers[name];
    if (!filler || filled.has(name)) return;
    filled.add(name);
    document.getElementById(name).append(...filler().filter(Boolean));
  };
})();
