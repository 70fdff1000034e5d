// Questions to the server of heald view: results of the model, the value of a node, shapes, the node on another device.
// An input is a text, or a picture that was chosen, dropped or pasted: the server decodes it and names it by a text.
"use strict";
(() => {
  const { data, nodes, text, make } = report;
  if (!data.live) return;
  const { inputs, devices, ranges } = data.live, given = new Map(), sent = new Map();
  const LARGEST_FILE = 32 * 2 ** 20; // of a picture; the server has the same bound
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
  const summary = (value) => [make("p", {}, value.type),
    value.top.length ? make("ol", { class: "top-results", "aria-label": "Largest elements" }, ...value.top.map(([index, figure]) => make("li", {}, make("b", {}, `[${index}]`), ` ${figure}`))) : null,
    pairs(value.statistics),
    value.histogram ? histogram(value.histogram) : null,
    value.picture ? make("img", { src: `data:image/png;base64,${value.picture}`, alt: "The tensor as a picture", class: "pixels" }) : null,
    value.elements.length ? make("p", { class: "faint elements" }, `${value.elements.join("  ")}${value.is_cut ? " …" : ""}`) : null];
  const SHOW = {
    values: summary,
    shapes: ({ shapes }) => [pairs(shapes)],
    outputs: ({ outputs }) => outputs.flatMap(([name, value]) => [make("h3", {}, name), ...summary(value)]),
    compare: (result) => [...result.notes.map((note) => make("p", { class: "bad" }, note)), make("p", { class: result.is_beyond ? "bad" : null }, `${result.device} ${result.is_beyond ? "differs from" : "agrees with"} ${result.reference}`),
      pairs([["largest difference", result.largest || "no number"], ["in deviations", result.relative]]), ...summary(result.value)],
  };

  // The base64 of a file: the part of its data URL behind the comma.
  const contentOf = (file) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`the file ${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
  const isJson = (file) => file.type === "application/json" || file.name.endsWith(".json");

  // One input: a text field and, for pixels and strings, a file and the range of its pixels.
  const field = ([name, type, takesPicture]) => {
    const entry = make("textarea", { rows: 1, placeholder: takesPicture ? "made up; :2,8, JSON, or a picture dropped here" : "made up; :2,8 or JSON" });
    const shown = make("div", { class: "sent", "aria-live": "polite" });
    const show = ({ file, note, value } = {}) => shown.replaceChildren(...(file ? [make("p", { class: "faint" }, `${file}, as the model sees it: ${value.type}`),
      value.picture ? make("img", { src: `data:image/png;base64,${value.picture}`, alt: `The picture ${file}`, class: "pixels" }) : null,
      note ? make("p", { class: "bad" }, note) : null].filter(Boolean) : []));
    const write = (text) => { given.set(name, entry.value = text); };
    let turnOfFile = 0, lastFile = sent.has(name) ? sent.get(name).source : null;
    const take = async (file) => {
      const mine = turnOfFile += 1;
      try {
        if (file.size > LARGEST_FILE) throw new Error(`the file has more than ${LARGEST_FILE / 2 ** 20} MiB`);
        if (isJson(file)) { sent.delete(name); show(); write(await file.text()); return; }
        lastFile = file;
        shown.replaceChildren(make("p", { class: "faint" }, "reading"));
        const answer = await ask({ do: "picture", input: name, range: range.value, content: await contentOf(file) });
        if (mine !== turnOfFile) return;
        write(answer.text);
        sent.set(name, { ...answer, file: file.name, source: file, range: range.value });
        show(sent.get(name));
      } catch (error) { if (mine === turnOfFile) shown.replaceChildren(make("p", { class: "bad" }, error.message)); }
    };
    const range = make("select", { "aria-label": `Range of pixels of ${name}`, onchange: () => { if (lastFile) take(lastFile); } }, ...ranges.map((title) => make("option", { value: title }, title)));
    const chooser = make("input", { type: "file", accept: "image/*,.json", "aria-label": `File for ${name}`, onchange: (event) => { if (event.target.files[0]) take(event.target.files[0]); } });
    entry.value = given.get(name) || "";
    entry.addEventListener("input", () => { turnOfFile += 1; lastFile = null; given.set(name, entry.value); sent.delete(name); show(); });
    const whole = make("div", { class: "input-field" }, make("label", {}, `${name} ${type}`, entry), takesPicture ? make("div", { class: "group" }, chooser, range) : null, shown);
    const files = (event, transfer) => { if (transfer && transfer.files[0]) { event.preventDefault(); whole.classList.remove("over"); take(transfer.files[0]); } };
    if (takesPicture) entry.addEventListener("paste", (event) => files(event, event.clipboardData));
    whole.addEventListener("dragover", (event) => { event.preventDefault(); whole.classList.add("over"); });
    whole.addEventListener("dragleave", () => whole.classList.remove("over"));
    whole.addEventListener("drop", (event) => files(event, event.dataTransfer));
    if (sent.has(name)) { range.value = sent.get(name).range; show(sent.get(name)); }
    return whole;
  };

  const form = (title, node, ...parts) => {
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
    output = 0;
    return [make("h3", {}, title), ...inputs.map(field), ...parts.flatMap((part) => part(button)), box];
  };
  report.live = (node) => form("Look inside", node, (button) => [
    make("label", {}, "result", make("input", { type: "number", min: 0, value: 0, oninput: (event) => { output = Number(event.target.value) || 0; } })),
    make("div", { class: "group" }, button("Values", "values"), button("Shapes", "shapes")),
    make("label", {}, "device", make("input", { value: device, list: "devices", oninput: (event) => { device = event.target.value; } }),
      make("datalist", { id: "devices" }, ...devices.map((name) => make("option", { value: name })))),
    make("div", { class: "group" }, button("Run on this device and compare", "compare"))]);
  report.liveModel = () => form("Run the model", 0, (button) => [make("div", { class: "group" }, button("Run", "outputs"))]);

  // A file that misses its field is not opened in the place of the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
})();
