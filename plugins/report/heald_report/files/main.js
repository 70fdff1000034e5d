// Tabs, search, theme, and links: the part behind # names the tab, the scope, the node, the call and the colour.
"use strict";
(() => {
  const { data, nodes, count, text, pictures, calls, shown, make } = report;
  const tabs = [...document.querySelectorAll("[role=tab]")], colour = document.getElementById("colour");
  let tab = "graph", isReading = false;

  report.showTab = (name) => {
    tab = tabs.some((button) => button.dataset.tab === name) ? name : "graph";
    for (const button of tabs) {
      button.setAttribute("aria-selected", String(button.dataset.tab === tab));
      button.tabIndex = button.dataset.tab === tab ? 0 : -1;
    }
    for (const section of document.querySelectorAll("section")) section.hidden = section.id !== tab;
    if (tab === "timeline") report.showTimeline();
    if (tab === "passes") report.showPasses();
    report.fillTable(tab);
    report.link();
  };
  report.link = () => {
    if (isReading) return;
    const parts = new URLSearchParams({ tab });
    if (tab === "graph") {
      const box = shown.box >= 0 ? pictures[shown.picture].boxes[shown.box] : null;
      const node = shown.node !== undefined ? shown.node : box && box.kind === report.KIND.NODE ? box.ref : -1;
      if (node >= 0) { parts.set("node", nodes.name[node]); if (text(nodes.function[node])) parts.set("function", text(nodes.function[node])); }
      else if (shown.picture !== first) parts.set("picture", shown.picture);
      parts.set("colour", shown.mode);
    } else if (tab === "timeline" && report.chosenCall() >= 0) parts.set("call", report.chosenCall());
    if (tab === "passes" || parts.get("colour") === "pass") parts.set("step", report.stepNumber());
    history.replaceState(null, "", `#${parts}`);
  };
  const first = data.first;
  report.first = first;
  const read = () => {
    const parts = new URLSearchParams(location.hash.slice(1)), picture = Number(parts.get("picture") ?? first), call = Number(parts.get("call") ?? -1);
    const node = parts.has("node") ? nodes.name.findIndex((name, index) => name === parts.get("node") && text(nodes.function[index]) === (parts.get("function") || "")) : -1;
    isReading = true;
    if ([...colour.options].some((option) => option.value === parts.get("colour"))) colour.value = shown.mode = parts.get("colour");
    if (parts.has("step")) report.chooseStep(Number(parts.get("step")));
    report.showTab("graph");
    report.showPicture(pictures[picture] ? picture : first);
    if (node >= 0) report.showNode(node);
    else if (calls[call]) report.showCall(call);
    else report.showTab(parts.get("tab") ?? (data.comparison ? "comparison" : "graph"));
    isReading = false;
  };

  for (const button of tabs) button.addEventListener("click", () => report.showTab(button.dataset.tab));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.findIndex((button) => button.dataset.tab === tab) + step + tabs.length) % tabs.length];
    report.showTab(next.dataset.tab);
    next.focus();
  });
  colour.addEventListener("change", () => report.colourBy(colour.value));

  const input = document.getElementById("search"), hits = document.getElementById("hits"), MOST_HITS = 40;
  let list = [], at = 0;
  const close = () => { hits.hidden = true; input.setAttribute("aria-expanded", "false"); };
  const go = (index) => { if (list[index] === undefined) return; close(); report.showNode(list[index]); document.getElementById("canvas").focus(); };
  const search = () => {
    const wanted = input.value.trim().toLowerCase();
    list = [];
    const exact = nodes.name.findIndex((name) => name.toLowerCase() === wanted);
    if (wanted && exact >= 0) list.push(exact);
    for (let node = 0; wanted && node < count; node += 1)
      if (node !== exact && (nodes.name[node].toLowerCase().includes(wanted) || text(nodes.op[node]).toLowerCase() === wanted)) list.push(node);
    const more = list.length - MOST_HITS;
    list.length = Math.min(list.length, MOST_HITS);
    at = 0;
    hits.replaceChildren(...list.map((node, index) => make("li", { role: "option", "aria-selected": String(index === at), onmousedown: (event) => { event.preventDefault(); go(index); } },
      nodes.name[node], make("span", { class: "faint" }, ` ${text(nodes.op[node])}`))));
    if (more > 0) hits.append(make("li", { class: "faint" }, `and ${more} more`));
    if (wanted && !list.length) hits.replaceChildren(make("li", { class: "faint" }, "no node"));
    hits.hidden = !wanted;
    input.setAttribute("aria-expanded", String(!hits.hidden));
  };
  input.addEventListener("input", search);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.length) {
      at = (at + step + list.length) % list.length;
      [...hits.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
      hits.children[at].scrollIntoView({ block: "nearest" });
      event.preventDefault();
    } else if (event.key === "Enter") go(at);
    else if (event.key === "Escape") close();
  });
  window.addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "SELECT"].includes(document.activeElement.tagName)) { input.focus(); event.preventDefault(); }
  });

  document.getElementById("theme").addEventListener("click", () => {
    const rootElement = document.documentElement, dark = rootElement.dataset.theme ? rootElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    rootElement.dataset.theme = dark ? "light" : "dark";
    report.redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => report.redraw());
  window.addEventListener("hashchange", read);
  read();
  report.link();
})();
