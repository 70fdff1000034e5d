// Questions about a node to the server of heald view: the value of a result, shapes, and the node on another device.
"use strict";
(() => {
  const { data, nodes, text, make } = report;
  if (!data.live) return;
  const { inputs, devices } = data.live, given = new Map();
  let device = devices[0] || "", output = 0, turn = 0;

  const ask = async (question) => {
    const answer = await fetch(new URL("ask", location.href.split("#")[0]), { method: "POST",
      headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...question, inputs: Object.fromEntries(given) }) });
    const content = await answer.json().catch(() => ({ error: `the server answers ${answer.status}` }));
    if (!answer.ok) throw new Error([content.error, content.hint].filter(Boolean).join("; "));
    return content;
  };
  const pairs = (rows) => make("dl", {}, ...rows.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
  const histogram = ({ counts, least, largest }) => {
    const [width, height] = [288, 88], most = Math.max(...counts), step = width / counts.length;
    return make("svg", { viewBox: `0 0 ${width} ${height + 16}`, class: "chart", role: "img", "aria-label": `Histogram from ${least} to ${largest}` },
      ...counts.map((number, index) => make("rect", { x: index * step, y: height - number / most * height, width: step - 1, height: number / most * height, class: "bar-of" })),
      make("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }),
      make("text", { x: 0, y: height + 13 }, least), make("text", { x: width, y: height + 13, "text-anchor": "end" }, largest));
  };
  const summary = (value) => [make("p", {}, value.type), pairs(value.statistics),
    value.histogram ? histogram(value.histogram) : null,
    value.picture ? make("img", { src: `data:image/png;base64,${value.picture}`, alt: "The tensor as a picture", class: "pixels" }) : null,
    value.elements.length ? make("p", { class: "faint elements" }, `${value.elements.join("  ")}${value.is_cut ? " …" : ""}`) : null];
  const SHOW = {
    values: summary,
    shapes: ({ shapes }) => [pairs(shapes)],
    compare: (result) => [...result.notes.map((note) => make("p", { class: "bad" }, note)), make("p", { class: result.is_beyond ? "bad" : null }, `${result.device} ${result.is_beyond ? "differs from" : "agrees with"} ${result.reference}`),
      pairs([["largest difference", result.largest || "no number"], ["in deviations", result.relative]]), ...summary(result.value)],
  };

  report.live = (node) => {
    const box = make("div", { class: "answer", "aria-live": "polite" });
    const buttons = [];
    const run = async (action) => {
      const mine = turn += 1;
      buttons.forEach((button) => { button.disabled = true; });
      box.replaceChildren(make("p", { class: "faint" }, "running"));
      let content;
      try { content = SHOW[action](await ask({ do: action, node, output, device })); }
      catch (error) { content = [make("p", { class: "bad" }, error.message)]; }
      buttons.forEach((button) => { button.disabled = false; });
      if (mine === turn) box.replaceChildren(...content.filter(Boolean));
    };
    const button = (label, action) => { const made = make("button", { onclick: () => run(action), "data-do": action }, label); buttons.push(made); return made; };
    const fields = inputs.map(([name, type]) => make("label", {}, `${name} ${type}`, make("input", { value: given.get(name) || "",
      placeholder: "made up; :2,8 or JSON", oninput: (event) => given.set(name, event.target.value) })));
    output = 0;
    return [make("h3", {}, "Look inside"), ...fields,
      make("label", {}, "result", make("input", { type: "number", min: 0, value: 0, oninput: (event) => { output = Number(event.target.value) || 0; } })),
      make("div", { class: "group" }, button("Values", "values"), button("Shapes", "shapes")),
      make("label", {}, "device", make("input", { value: device, list: "devices", oninput: (event) => { device = event.target.value; } }),
        make("datalist", { id: "devices" }, ...devices.map((name) => make("option", { value: name })))),
      make("div", { class: "group" }, button("Run on this device and compare", "compare")), box];
  };
})();
