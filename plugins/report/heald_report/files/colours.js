// Colours of boxes and calls: one for each device or kernel pack, or a scale for times and bytes.
"use strict";
(() => {
  const { nodes, text, ofNode, ofPicture, members, KIND, clocks, timeText, byteText } = report;
  const HUES = [212, 28, 272, 150, 340, 186, 52, 100];
  const isDark = () => {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const hueColour = (index) => {
    const hue = HUES[index % HUES.length];
    return isDark() ? `hsl(${hue} 45% 26%)` : `hsl(${hue} 75% 88%)`;
  };
  const NEUTRAL = () => (isDark() ? "#23272e" : "#f3f4f7");
  const scaleColour = (part) => {
    const level = Math.sqrt(Math.max(0, Math.min(1, part)));
    return isDark() ? `hsl(${30 - 20 * level} ${20 + 60 * level}% ${18 + 26 * level}%)`
      : `hsl(${45 - 35 * level} ${40 + 55 * level}% ${96 - 34 * level}%)`;
  };
  const kindsOf = (column) => {
    const counts = new Map();
    column.forEach((value) => { if (text(value) && text(value) !== "host") counts.set(text(value), (counts.get(text(value)) || 0) + 1); });
    return [...counts].sort((a, b) => b[1] - a[1]);
  };
  const kinds = { device: kindsOf(nodes.device), pack: kindsOf(nodes.pack) };
  const indexOf = { device: new Map(kinds.device.map(([name], i) => [name, i])),
    pack: new Map(kinds.pack.map(([name], i) => [name, i])) };

  const commonest = (mode, list) => {
    const counts = new Map();
    for (const node of list) {
      const name = text(nodes[mode][node]);
      if (name && name !== "host") counts.set(name, (counts.get(name) || 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] || (list.length ? text(nodes[mode][list[0]]) : "");
  };
  // The figures of a box: a time for each clock, or the bytes.
  const figures = (mode, box) => {
    if (box.kind >= KIND.SOURCE) return [];
    const sums = box.kind === KIND.SCOPE ? ofPicture[box.ref] : ofNode[box.ref];
    return sums ? (mode === "time" ? sums.us : [sums.bytes]) : [];
  };
  const CHANGES = [["rem", 0, "removed"], ["rew", 42, "rewritten"], ["add", 140, "added"]];
  const changeColour = (hue) => (isDark() ? `hsl(${hue} 45% 30%)` : `hsl(${hue} 85% 84%)`);
  const changeColourOf = (mode, list) => {
    const changes = mode === "pass" ? report.chosenChanges() : report.comparedChanges(), found = new Set(list.map((node) => changes.get(node)));
    const kinds = CHANGES.filter(([change]) => found.has(change));
    return kinds.length ? changeColour(kinds.length > 1 ? 42 : kinds[0][1]) : NEUTRAL();
  };
  report.colourOf = (mode, box, picture) => {
    if (box.kind >= KIND.SOURCE) return "none";
    if (mode === "pass" || mode === "comparison") return changeColourOf(mode, box.kind === KIND.SCOPE ? members[box.ref] : [box.ref, ...box.folded]);
    if (mode === "time" || mode === "memory") {
      const boxes = picture.boxes.filter((b) => b.kind < KIND.SOURCE), parts = figures(mode, box).map((value, index) =>
        value / Math.max(1e-9, ...boxes.map((b) => figures(mode, b)[index])));
      return Math.max(0, ...parts) ? scaleColour(Math.max(...parts)) : NEUTRAL();
    }
    const name = commonest(mode, box.kind === KIND.SCOPE ? members[box.ref] : [box.ref]);
    return indexOf[mode].has(name) ? hueColour(indexOf[mode].get(name)) : NEUTRAL();
  };
  // The devices or packs of a scope's nodes, as colours and parts of the whole.
  report.sharesOf = (mode, box) => {
    if (!indexOf[mode]) return [];
    const counts = new Map();
    for (const node of members[box.ref]) {
      const name = text(nodes[mode][node]);
      if (indexOf[mode].has(name)) counts.set(name, (counts.get(name) || 0) + 1);
    }
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => [stripColour(indexOf[mode].get(name)), count / total]);
  };
  const stripColour = (index) => `hsl(${HUES[index % HUES.length]} 60% ${isDark() ? 52 : 58}%)`;
  report.nameColour = (mode, name) => (indexOf[mode].has(name) ? hueColour(indexOf[mode].get(name)) : NEUTRAL());
  report.callColour = (name) => {
    let sum = 0;
    for (const character of name) sum = (sum * 31 + character.codePointAt(0)) % 997;
    return isDark() ? `hsl(${(sum * 47) % 360} 42% 62%)` : `hsl(${(sum * 47) % 360} 62% 74%)`;
  };
  report.figureText = (mode, box) => {
    if (mode === "memory") return figures(mode, box)[0] ? byteText(figures(mode, box)[0]) : "";
    return mode !== "time" ? "" : figures(mode, box).map((us, clock) => (us ? `${timeText(us)}${clock ? ` ${clocks[clock].name}` : ""}` : "")).filter(Boolean).join(" · ");
  };
  // The exact bytes of a box, as a tooltip of its rounded figure.
  report.figureTitle = (mode, box) => (mode === "memory" && figures(mode, box)[0] ? report.make("title", {}, report.exactBytes(figures(mode, box)[0])) : null);
  report.legend = (mode) => {
    const swatch = (colour, label) => report.make("span", {},
      report.make("svg", { viewBox: "0 0 10 10" }, report.make("rect", { width: 10, height: 10, rx: 2, fill: colour, stroke: "#8888" })),
      label);
    const common = [report.make("span", {}, "double frame: opens"), report.make("span", {}, "strip: shares of a mixed scope"), report.make("span", {}, "dashed edge: leads back"),
      report.make("span", {}, "thick edge: copied between memories")];
    if (mode === "time" || mode === "memory")
      return [swatch(NEUTRAL(), "none"), ...[0.05, 0.25, 0.6, 1].map((part) => swatch(scaleColour(part),
        part === 1 ? `most ${mode === "time" ? `time${clocks.length > 1 ? " of its clock" : ""}` : "bytes of results"} in this picture` : `${part * 100} %`)),
      report.make("span", {}, "a call counts for each node that it does"), ...common];
    if (mode === "comparison")
      return [swatch(NEUTRAL(), "equal"), ...["only here", "differs"].map((label, index) => swatch(changeColour(CHANGES[index][1]), label)), ...common];
    if (mode === "pass")
      return [report.make("span", {}, `by the pass ${report.chosenStep().name}:`), swatch(NEUTRAL(), "nothing"),
        ...CHANGES.map(([, hue, label]) => swatch(changeColour(hue), label)), ...common];
    return [swatch(NEUTRAL(), mode === "device" ? "the runtime itself" : "no kernel"), ...kinds[mode].slice(0, 12).map(([name, number]) => swatch(report.nameColour(mode, name), `${name} (${number})`)), ...common];
  };
})();
