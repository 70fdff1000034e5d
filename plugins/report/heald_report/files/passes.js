// The passes as steps: a list, a slider, and for the chosen step a picture of each pattern of changes.
"use strict";
(() => {
  const { data, make, timeText } = report;
  const steps = data.passes || [], section = document.getElementById("passes");
  const SIDES = { before: new Set(["same", "removed", "rewritten"]), both: null, after: new Set(["same", "added", "rewritten"]) };
  const SIGNS = { added: "+", removed: "−", rewritten: "~" };
  const state = { step: Math.max(0, steps.findIndex((step) => step.patterns.length)), side: "both" };
  report.chosenStep = () => steps[state.step];
  let changes = { of: -1, byNode: new Map() };
  report.chosenChanges = () => {
    if (changes.of !== state.step) changes = { of: state.step, byNode: new Map(steps[state.step].touched) };
    return changes.byNode;
  };

  const counts = (step) => ["added", "removed", "rewritten"].filter((change) => step[change])
    .map((change) => make("span", { class: `change ${change}` }, `${SIGNS[change]}${step[change]} ${change}`));
  const signs = (step) => ["added", "removed", "rewritten"].filter((change) => step[change])
    .map((change) => make("span", { class: `change ${change}`, title: change }, `${SIGNS[change]}${step[change]}`));
  const picture = report.changePicture = (drawn, side) => {
    const kept = SIDES[side], isShown = (change) => !kept || kept.has(change);
    const boxes = drawn.boxes.map(([label, second, change, node, x, y, w, h, name]) => ({ label, second, change, node, x, y, w, h, name }));
    const svg = make("svg", { viewBox: `0 0 ${drawn.width} ${drawn.height}`, class: "step-picture", role: "img", "aria-label": "Changed nodes and their neighbours" });
    svg.style.maxWidth = `${drawn.width}px`;
    svg.style.minWidth = `${drawn.width * 0.7}px`;
    for (const [from, to, change, bends] of drawn.edges) {
      if (!isShown(change)) continue;
      const group = report.wire({ boxes }, { from, to, bends, flags: from > to ? 1 : 0 });
      if (change !== "same") group.firstChild.classList.add(change);
      svg.append(group);
    }
    for (const box of boxes) {
      if (!isShown(box.change)) continue;
      const [before, after] = box.second.split(" → ");
      const second = after === undefined || side === "both" ? box.second : side === "before" ? before : after;
      svg.append(make("g", { class: `box step ${box.change}`, transform: `translate(${box.x} ${box.y})`,
        onclick: () => { if (box.node >= 0) report.showNode(box.node); } },
      make("title", {}, box.node >= 0 ? box.name : `${box.name}, not in the graph of this page`),
      make("rect", { class: "frame", width: box.w, height: box.h, rx: 5 }),
      make("text", { x: box.w / 2, y: 18, "text-anchor": "middle" }, box.label),
      make("text", { class: "second", x: box.w / 2, y: 33, "text-anchor": "middle" }, second)));
    }
    return svg;
  };
  const left = (count, what) => (count ? `${count} ${what}${count > 1 ? "s are" : " is"} not drawn` : "");
  const notes = ({ picture: { hidden, constants } }) => [left(hidden, "other changed node"), left(constants, "removed constant")].filter(Boolean).join("; ");
  report.changeNotes = notes;
  report.changeCounts = counts;
  const patternCard = (pattern, index) => make("div", { class: "card" },
    make("h2", {}, pattern.count > 1 ? `Pattern ${index + 1}, ${pattern.count} times` : `Pattern ${index + 1}, once`),
    make("div", { class: "wide" }, picture(pattern.picture, state.side)), notes(pattern) ? make("p", { class: "faint" }, notes(pattern)) : null,
    make("details", {}, make("summary", {}, `${pattern.names.length + pattern.more} changed nodes`),
      make("ul", {}, ...pattern.names.map(([name, change, node, why]) => make("li", {}, make("span", { class: `change ${change}` }, SIGNS[change]), " ",
        node >= 0 ? make("button", { class: "link", onclick: () => report.showNode(node) }, name) : name, why ? make("span", { class: "faint" }, ` ${why}`) : null)),
      pattern.more ? make("li", { class: "faint" }, `and ${pattern.more} more`) : null)));

  const range = make("input", { type: "range", min: 0, max: Math.max(0, steps.length - 1), "aria-label": "Step", oninput: () => choose(Number(range.value)) });
  const back = make("button", { "aria-label": "Pass before", onclick: () => choose(state.step - 1) }, "‹");
  const on = make("button", { "aria-label": "Next pass", onclick: () => choose(state.step + 1) }, "›");
  const sides = Object.keys(SIDES).map((side) => make("button", { "data-side": side, onclick: () => { state.side = side; show(); } }, side));
  const list = make("div", { class: "wide" }), shown = make("div", {});
  const stepList = () => make("table", {}, make("tr", {}, ...["pass", "plugin", "time", "nodes", "changes"].map((title) => make("th", { class: ["time", "nodes"].includes(title) ? "number" : null }, title))),
    ...steps.map((step, index) => make("tr", { class: `${index === state.step ? "chosen" : ""}${step.patterns.length ? "" : " idle"}` },
      make("td", {}, make("button", { class: "link", "aria-current": index === state.step ? "step" : null, onclick: () => choose(index) }, `${index + 1} ${step.name}`)),
      make("td", {}, step.plugin), make("td", { class: "number" }, timeText(step.us)), make("td", { class: "number" }, String(step.after)),
      make("td", {}, ...signs(step), step.functions ? `${step.functions} functions` : ""))));
  const changeTable = (step) => {
    const [NAME, NODE, CHANGE, FIELD, BEFORE, AFTER, WHY] = [0, 1, 2, 3, 4, 5, 6];
    if (!step.changes.length) return null;
    return make("div", { class: "card" }, make("h2", {}, "Changed nodes"),
      ...report.table(step.changes, [["node", (r) => r[NAME], { link: (r) => (r[NODE] >= 0 ? () => report.showNode(r[NODE]) : null) }], ["change", (r) => r[CHANGE]],
        ["field", (r) => r[FIELD]], ["before", (r) => r[BEFORE]], ["after", (r) => r[AFTER]], ["why", (r) => r[WHY]]].filter(([title, value]) => title !== "why" || step.changes.some(value)),
      { placeholder: "Filter the changes", name: `${step.name}-changes` }),
      step.more_changes ? make("p", { class: "faint" }, `and ${step.more_changes} more rows`) : null);
  };
  const choose = (index) => { state.step = Math.max(0, Math.min(steps.length - 1, index)); show(); report.link(); };
  const show = () => {
    const step = steps[state.step];
    range.value = state.step;
    back.disabled = state.step === 0;
    on.disabled = state.step === steps.length - 1;
    for (const button of sides) button.setAttribute("aria-pressed", String(button.dataset.side === state.side));
    list.replaceChildren(stepList());
    shown.replaceChildren(...[make("h2", {}, `${step.name}${step.plugin ? `, of plugin ${step.plugin}` : ""}`),
      make("p", {}, `${timeText(step.us)}; ${step.before} nodes before, ${step.after} after. `, ...counts(step)),
      step.why.length ? make("p", {}, `Of the removed nodes: ${step.why.map(([number, word]) => `${number} ${word}`).join(", ")}.`) : null,
      step.touched.length ? make("p", {}, make("button", { onclick: () => { document.getElementById("colour").value = "pass"; report.showTab("graph"); report.colourBy("pass"); } }, "Show in the graph")) : null,
      ...(step.patterns.length ? step.patterns.map(patternCard) : [make("p", { class: "faint" }, "This pass changed no node.")]),
      step.more ? make("p", { class: "faint" }, `and ${step.more} rarer patterns`) : null, changeTable(step)].filter(Boolean));
  };
  let isFilled = false;
  report.showPasses = () => {
    if (isFilled) return;
    isFilled = true;
    section.append(make("div", { class: "tools" }, back, range, on, make("span", { class: "group", role: "group", "aria-label": "Side" }, ...sides)),
      make("div", { class: "steps" }, make("div", { class: "card list" }, list), shown));
    show();
  };
  report.chooseStep = (index) => { if (steps[index]) { state.step = index; if (isFilled) show(); } };
  report.stepNumber = () => state.step;
})();
