// A host program: the calls of a function as boxes, and a step through them with the states of calls and registers.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent), $ = (id) => document.getElementById(id);
  const SVG = ["svg", "g", "rect", "path", "text", "title"];
  const make = (name, attributes = {}, ...children) => {
    const element = SVG.includes(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  let chosen = 0, step = 0;
  const cut = (text) => (text.length > 30 ? `${text.slice(0, 14)}…${text.slice(-15)}` : text);

  const NONSTRICT = 1, ASYNCHRONOUS = 2;

  // After `step` steps of the run: the values of an asynchronous call are pending between its begin and their arrival.
  const states = (fn) => {
    const begun = new Set(), waited = new Set(), filled = new Set(fn.arguments.map((_, index) => index)), uses = new Set();
    for (const [index, isArrival] of fn.steps.slice(0, step)) {
      const [, , , , gives, flags] = fn.calls[index];
      begun.add(index);
      if (flags & ASYNCHRONOUS && gives.length && !isArrival) { waited.add(index); continue; }
      waited.delete(index);
      gives.forEach((register) => filled.add(register));
    }
    const pending = new Set([...waited].flatMap((index) => fn.calls[index][4])), kept = new Set(fn.kept);
    fn.calls.forEach(([, , , needs], index) => { if (!begun.has(index)) needs.forEach((register) => uses.add(register)); });
    const registers = fn.registers.map((_, register) => {
      if (!filled.has(register)) return pending.has(register) ? "pending" : "empty";
      return uses.has(register) || kept.has(register) ? "filled" : "released";
    });
    const calls = fn.calls.map(([, , , needs, , flags, args], index) => {
      if (begun.has(index)) return waited.has(index) ? "value pending" : "done";
      const missing = (list) => new Set(list.filter((register) => !filled.has(register))).size;
      const loose = flags & NONSTRICT ? needs.slice(0, args) : [], strict = loose.length ? needs.slice(args) : needs;
      const count = missing(strict) + (loose.length && loose.every((register) => !filled.has(register)) ? 1 : 0);
      return count ? `waits for ${count}` : "ready";
    });
    return { registers, calls };
  };
  // An edge to a call that may begin without these values.
  const isLoose = (fn, to, through) => {
    const [, , , needs, , flags, args] = fn.calls[to];
    return Boolean(flags & NONSTRICT) && through.every((register) => needs.slice(0, args).includes(register));
  };
  const draw = (fn, { calls, registers }) => {
    const picture = fn.picture;
    if (!picture) return make("p", { class: "notice" }, fn.calls.length ? `${fn.calls.length} calls: too many for a picture` : "The function has no calls.");
    const boxes = new Map(picture.boxes.map(([index, x, y, w, h]) => [index, { x, y, w, h }]));
    const wires = picture.edges.filter(([from]) => boxes.has(from)).map(([from, to, through, bends]) => {
      const a = boxes.get(from), b = boxes.get(to), points = [[a.x + a.w / 2, a.y + a.h]];
      for (let i = 0; i < bends.length; i += 2) points.push([bends[i], bends[i + 1]]);
      points.push([b.x + b.w / 2, b.y]);
      let line = `M${points[0][0]} ${points[0][1]}`;
      for (let i = 1; i < points.length; i += 1) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i], half = (y1 - y0) / 2;
        line += `C${x0} ${y0 + half} ${x1} ${y1 - half} ${x1} ${y1}`;
      }
      return make("path", { d: line, class: `wire${through.some((register) => registers[register] === "filled") ? " near" : ""}${isLoose(fn, to, through) ? " back" : ""}` },
        make("title", {}, through.map((register) => `%${register}`).join(", ")));
    });
    const streams = [...new Set(fn.calls.map((call) => call[2]))];
    const groups = picture.boxes.map(([index, x, y, w, h]) => {
      const call = fn.calls[index], state = index < 0 ? "done" : calls[index];
      const current = step > 0 && index === fn.steps[step - 1][0];
      const group = make("g", { class: `box call-${state.split(" ")[0]}${current ? " chosen" : ""}`, transform: `translate(${x} ${y})` },
        make("rect", { class: "frame", width: w, height: h, rx: 5 }),
        call ? make("rect", { class: "stream", width: 5, height: h, rx: 2 }) : null,
        make("text", { x: w / 2, y: 18, "text-anchor": "middle" }, index < 0 ? "arguments" : cut(call[0])),
        make("text", { class: "second", x: w / 2, y: 33, "text-anchor": "middle" }, index < 0 ? fn.arguments.length : state),
        make("title", {}, call ? `${call[0]} ${call[1]} ${call[2]}` : fn.arguments.join(", ")));
      if (call) group.querySelector(".stream").style.fill = `hsl(${212 + streams.indexOf(call[2]) * 137} 60% 50%)`;
      return group;
    });
    return make("svg", { viewBox: `-8 -8 ${picture.width + 16} ${picture.height + 16}`, width: picture.width + 16, height: picture.height + 16 }, ...wires, ...groups);
  };
  const table = (head, rows) => make("table", {}, make("tr", {}, ...head.map((title) => make("th", {}, title))),
    ...rows.map(([kind, ...cells]) => make("tr", { class: kind }, ...cells.map((cell) => make("td", {}, cell)))));
  const show = () => {
    const fn = data.functions[chosen];
    if (!fn) { $("canvas").replaceChildren(make("p", { class: "notice" }, "The program has no functions.")); return; }
    const now = states(fn), last = step ? fn.steps[step - 1] : null;
    $("step").textContent = `step ${step} of ${fn.steps.length}${last ? `: ${cut(fn.calls[last[0]][0])}${last[1] ? ", its values arrive" : ""}` : ""}`;
    $("back").disabled = $("first").disabled = step === 0;
    $("on").disabled = $("last").disabled = step === fn.steps.length;
    $("canvas").replaceChildren(draw(fn, now));
    $("details").replaceChildren(...[make("h2", {}, "Registers"),
      table(["", "type", "state"], fn.registers.slice(0, 500).map((kind, register) => [`register-${now.registers[register]}`,
        `%${register}${fn.arguments[register] !== undefined ? ` ${fn.arguments[register]}` : ""}`, kind, `${now.registers[register]}${fn.results.includes(register) ? ", result" : ""}`])),
      make("h2", {}, "Calls in the order of the run"),
      table(["kernel", "stream", "needs", "fills", "state"], fn.steps.filter(([, isArrival]) => !isArrival).slice(0, 500).map(([index]) => {
        const [kernel, , stream, needs, gives, flags] = fn.calls[index], names = (list) => list.map((register) => `%${register}`).join(" ");
        return [last && index === last[0] ? "current" : "", `${kernel}${flags & NONSTRICT ? ", non-strict" : ""}${flags & ASYNCHRONOUS ? ", asynchronous" : ""}`, stream, names(needs), names(gives), now.calls[index]];
      })), data.left_out ? make("p", { class: "faint" }, `${data.left_out} more functions are left out`) : null].filter(Boolean));
  };
  const go = (place) => { step = Math.max(0, Math.min(data.functions[chosen].steps.length, place)); show(); };
  $("function").append(...data.functions.map((fn, index) => make("option", { value: index }, `${fn.name} (${fn.calls.length})`)));
  $("function").addEventListener("change", () => { chosen = Number($("function").value); step = 0; show(); });
  $("first").addEventListener("click", () => go(0));
  $("back").addEventListener("click", () => go(step - 1));
  $("on").addEventListener("click", () => go(step + 1));
  $("last").addEventListener("click", () => go(Infinity));
  $("canvas").addEventListener("keydown", (event) => {
    const to = { ArrowRight: step + 1, ArrowDown: step + 1, ArrowLeft: step - 1, ArrowUp: step - 1, Home: 0, End: Infinity }[event.key];
    if (to !== undefined) { go(to); event.preventDefault(); }
  });
  show();
})();
