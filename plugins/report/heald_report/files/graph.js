// The picture of a scope: boxes and edges at the places that the page states, zoom, keys, and the details of a box.
"use strict";
(() => {
  const { data, nodes, text, KIND, pictures, callers, consumers, ofNode, ofPicture, calls, copies, make, timeText, timesText, timeShare, bytesElement } = report;
  const canvas = document.getElementById("canvas"), details = document.getElementById("details");
  const [LEAST, MOST] = [0.03, 4];
  const shown = { picture: -1, box: -1, mode: "device", x: 0, y: 0, scale: 1 };
  report.shown = shown;
  let root = null, elements = [], wires = [];

  const centre = (box) => [box.x + box.w / 2, box.y + box.h / 2];
  const wirePath = (picture, edge) => {
    const from = picture.boxes[edge.from], to = picture.boxes[edge.to], down = from.y + from.h <= to.y;
    const points = [[from.x + from.w / 2, down ? from.y + from.h : from.y]];
    for (let i = 0; i < edge.bends.length; i += 2) points.push([edge.bends[i], edge.bends[i + 1]]);
    points.push([to.x + to.w / 2, down ? to.y : to.y + to.h]);
    let line = `M${points[0][0]} ${points[0][1]}`;
    for (let i = 1; i < points.length; i += 1) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], half = (y1 - y0) / 2;
      line += `C${x0} ${y0 + half} ${x1} ${y1 - half} ${x1} ${y1}`;
    }
    return { line, end: points[points.length - 1], down };
  };
  const hasSibling = (picture, edge) => picture.edges.some((other) => other !== edge && other.from === edge.from && other.to === edge.to);
  const memoryName = (number) => (number < 0 ? "host memory" : text(number));
  const copyText = (edge) => `${edge.tensors} tensor${edge.tensors === 1 ? "" : "s"} copied: ${edge.copies.map(([from, to]) => `${memoryName(from)} to ${memoryName(to)}`).join(", ")}`;
  const wire = (picture, edge) => {
    const { line, end: [x, y], down } = wirePath(picture, edge), d = down ? -6 : 6;
    const kind = `wire${edge.flags & 1 ? " back" : ""}${edge.flags & 2 ? " copy" : ""}`;
    // An edge of copies stands beside the edge of the tensors that stay.
    const group = make("g", { transform: edge.flags & 2 && hasSibling(picture, edge) ? "translate(6 0)" : null }, make("path", { d: line, class: kind }),
      make("polygon", { points: `${x},${y} ${x - 3.5},${y + d} ${x + 3.5},${y + d}`, class: `tip${edge.flags & 2 ? " copy" : ""}` }));
    if (edge.flags & 2) group.append(make("title", {}, copyText(edge)));
    return group;
  };
  report.wire = wire;
  const opens = (box) => (box.kind === KIND.SCOPE ? box.ref : box.kind === KIND.NODE && data.calls[box.ref] ? data.calls[box.ref][0] : -1);
  const secondLine = (box) => {
    const figure = report.figureText(shown.mode, box);
    const what = box.kind === KIND.SCOPE ? `${ofPicture[box.ref].nodes} nodes` : box.kind === KIND.NODE ? text(nodes.op[box.ref]) : "";
    return figure && (figure.length + what.length + 3) * 6 < box.w - 10 ? `${figure} · ${what}` : figure || what;
  };
  const fitted = (line, width) => {
    const most = Math.floor((width - 14) / 6);
    return line.length > most ? `${line.slice(0, Math.max(1, most - 1))}…` : line;
  };
  const boxGroup = (box, picture, depth) => {
    const port = box.kind >= KIND.SOURCE, kind = port ? "port" : box.kind === KIND.SCOPE ? "scope" : "node";
    const group = make("g", { class: `box ${kind}`, transform: `translate(${box.x} ${box.y})` },
      make("rect", { class: "frame", width: box.w, height: box.h, rx: box.kind === KIND.SCOPE ? 9 : 5,
        style: null, fill: report.colourOf(shown.mode, box, picture) }));
    const fill = report.colourOf(shown.mode, box, picture);
    if (fill !== "none") group.firstChild.style.fill = fill;
    if (opens(box) >= 0 && !box.inner.length)
      group.append(make("rect", { x: 3, y: 3, width: box.w - 6, height: box.h - 6, rx: 5, fill: "none" }));
    group.querySelectorAll("rect:not(.frame)").forEach((rect) => { rect.style.fill = "none"; });
    const middle = box.inner.length ? 18 : port ? box.h / 2 + 4.5 : 18;
    const shares = box.kind === KIND.SCOPE ? report.sharesOf(shown.mode, box) : [];
    for (let at = 0, index = 0; shares.length > 1 && index < shares.length; at += shares[index][1], index += 1) {
      const strip = make("rect", { class: "strip", x: 8 + at * (box.w - 16), y: box.h - 5, width: shares[index][1] * (box.w - 16), height: 3, fill: shares[index][0] });
      strip.style.fill = shares[index][0];
      group.append(strip);
    }
    group.append(make("text", { x: box.w / 2, y: middle, "text-anchor": "middle" },
      port ? `${box.kind === KIND.SOURCE ? "from" : "to"} ${box.label}` : box.label));
    if (!port) group.append(make("text", { class: "second", x: box.w / 2, y: middle + 15, "text-anchor": "middle" },
      fitted(secondLine(box), box.w), report.figureTitle(shown.mode, box)));
    for (const [number, x, y] of box.inner) {
      const inner = make("g", { transform: `translate(${x} ${y})` },
        make("rect", { width: pictures[number].width, height: pictures[number].height, rx: 4, fill: "none" }));
      inner.firstChild.style.fill = "none";
      drawInto(inner, number, depth + 1);
      group.append(inner);
    }
    return group;
  };
  function drawInto(parent, number, depth) {
    const picture = pictures[number];
    const lines = picture.edges.map((edge) => wire(picture, edge));
    const groups = picture.boxes.map((box, index) => {
      const group = boxGroup(box, picture, depth);
      group.addEventListener("click", (event) => { event.stopPropagation(); choose(number, index, depth > 0); });
      group.addEventListener("dblclick", (event) => { event.stopPropagation(); open(number, index); });
      return group;
    });
    parent.append(...lines, ...groups);
    if (depth === 0) { elements = groups; wires = lines; }
  }

  const place = () => root.setAttribute("transform", `translate(${shown.x} ${shown.y}) scale(${shown.scale})`);
  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const scale = Math.max(LEAST, Math.min(MOST, shown.scale * factor)), ratio = scale / shown.scale;
    Object.assign(shown, { scale, x: x - (x - shown.x) * ratio, y: y - (y - shown.y) * ratio });
    place();
  };
  const fit = (whole) => {
    const picture = pictures[shown.picture], [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const across = width / (picture.width + 16), along = height / (picture.height + 16);
    const scale = Math.max(LEAST, Math.min(1.25, whole ? Math.min(across, along) : Math.max(Math.min(across, along), Math.min(across, 0.85), 0.6)));
    const first = picture.boxes[0], middle = first && picture.width * scale > width ? first.x + first.w / 2 : picture.width / 2;
    Object.assign(shown, { scale, x: width / 2 - middle * scale,
      y: Math.max(8, (height - picture.height * scale) / 2) });
    place();
  };
  const reveal = (box) => {
    const [x, y] = centre(box), px = x * shown.scale + shown.x, py = y * shown.scale + shown.y;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (px < 60 || px > width - 60) shown.x += width / 2 - px;
    if (py < 40 || py > height - 40) shown.y += height / 2 - py;
    place();
  };

  const draw = () => {
    const svg = make("svg", { "aria-hidden": "true" });
    root = make("g");
    drawInto(root, shown.picture, 0);
    svg.append(root);
    canvas.replaceChildren(svg);
    place();
    mark();
    document.getElementById("legend").replaceChildren(...report.legend(shown.mode));
  };
  const mark = () => {
    const picture = pictures[shown.picture], near = new Set();
    wires.forEach((group, index) => {
      const edge = picture.edges[index], touches = shown.box >= 0 && (edge.from === shown.box || edge.to === shown.box);
      group.firstChild.classList.toggle("near", touches);
      if (touches) { near.add(edge.from); near.add(edge.to); }
    });
    elements.forEach((group, index) => {
      group.classList.toggle("chosen", index === shown.box);
      group.classList.toggle("near", near.has(index) && index !== shown.box);
    });
  };
  const showPath = () => {
    const steps = [];
    for (let at = shown.picture; at >= 0;) {
      const picture = pictures[at], isRoot = picture.parent < 0;
      const parent = isRoot ? -1 : pictures[picture.parent];
      const box = parent === -1 ? null : parent.boxes.find((b) => b.kind === KIND.SCOPE && b.ref === at);
      steps.unshift([at, isRoot ? (picture.fn || "graph") : box ? box.label : picture.scope]);
      const caller = isRoot && callers.has(at) ? callers.get(at)[0] : -1;
      at = isRoot ? (caller >= 0 && steps.length < 30 ? data.places[caller][0] : -1) : picture.parent;
    }
    document.getElementById("path").replaceChildren(...steps.flatMap(([number, label], index) => [
      index ? make("span", {}, "›") : null,
      make("button", { onclick: () => report.showPicture(number), "aria-current": number === shown.picture ? "page" : null }, label),
    ]).filter(Boolean));
  };

  report.showPicture = (number, box = -1) => {
    const isOther = number !== shown.picture;
    Object.assign(shown, { picture: number, box });
    if (isOther) { draw(); fit(false); } else mark();
    if (box >= 0) reveal(pictures[number].boxes[box]);
    showPath();
    showDetails();
    report.link();
  };
  report.showNode = (node) => {
    const [picture, box] = data.places[node];
    report.showTab("graph");
    report.showPicture(picture, box);
    describe(node);
    if (pictures[picture].boxes[box].ref === node) details.append(...copyList(box));
    shown.node = node;
    report.link();
  };
  report.redraw = () => { if (shown.picture >= 0) draw(); };
  report.colourBy = (mode) => { shown.mode = mode; draw(); report.link(); };

  const choose = (number, index, isInner) => {
    shown.node = undefined;
    if (isInner) { const box = pictures[number].boxes[index]; if (box.kind === KIND.NODE) describe(box.ref); return; }
    report.showPicture(number, index);
    canvas.focus({ preventScroll: true });
  };
  const open = (number, index) => {
    const box = pictures[number].boxes[index];
    if (box.kind >= KIND.SOURCE) {
      if (box.ref >= 0) report.showNode(box.ref);
      else if (box.ref <= -2) { const target = -2 - box.ref; report.showPicture(target); }
    } else if (opens(box) >= 0) report.showPicture(opens(box));
  };

  const link = (node) => make("button", { class: "link", onclick: () => report.showNode(node) }, nodes.name[node]);
  const rows = (pairs) => make("dl", {}, ...pairs.filter(([, value]) => value).flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
  const linkList = (title, list) => (list.length ? [make("h3", {}, `${title} (${list.length})`),
    make("ul", {}, ...list.slice(0, 30).map((node) => make("li", {}, link(node))),
      list.length > 30 ? make("li", { class: "faint" }, `and ${list.length - 30} more`) : null)] : []);
  const MOST_LISTED_CALLS = 12;
  const callList = (node) => {
    const list = ofNode[node].calls, more = list.length - MOST_LISTED_CALLS;
    return list.length ? [make("h3", {}, `Calls (${list.length})`), make("ul", {}, ...list.slice(0, MOST_LISTED_CALLS).map((index) => make("li", {},
      make("button", { class: "link", onclick: () => report.showCall(index) }, `${calls[index].kernel}, ${timeText(calls[index].own)}`))),
    more > 0 ? make("li", { class: "faint" }, `and ${more} more`) : null)] : [];
  };
  const describe = (node) => {
    const sums = ofNode[node], isShared = sums.calls.some((index) => calls[index].of.length > 1), time = timesText(sums.us), out = copies.filter((copy) => copy.source === node);
    details.replaceChildren(make("h2", {}, nodes.name[node]), rows([
      ["op", text(nodes.op[node])], ["function", text(nodes.function[node])], ["device", text(nodes.device[node])],
      ["requested", text(nodes.requested[node])], ["kernel pack", text(nodes.pack[node])],
      ["reason", text(nodes.reason[node])], ["kernel by", text(nodes.rule[node])], ["lost", text(nodes.lost[node])], ["refused", text(nodes.refused[node])],
      ["time", time ? `${time}${isShared ? ", with the nodes of the same call" : ""}` : ""],
      ["results", sums.bytes ? bytesElement(sums.bytes) : ""],
      ["copy time", timesText(sums.copyUs)], ["copied for it", sums.copied ? bytesElement(sums.copied) : ""],
      ["copied from it", out.length ? bytesElement(out.reduce((sum, copy) => sum + copy.bytes, 0)) : ""]]),
    ...(data.calls[node] || []).map((root) => make("p", {}, make("button", { onclick: () => report.showPicture(root) },
      `Open ${pictures[root].fn}`))),
    ...(report.live ? report.live(node) : []),
    ...callList(node), ...linkList("Inputs", nodes.inputs[node]), ...linkList("Consumers", consumers[node]));
  };
  const copyList = (index) => {
    const copies = pictures[shown.picture].edges.filter((edge) => edge.flags & 2 && (edge.from === index || edge.to === index));
    return copies.length ? [make("h3", {}, "Copies"), make("ul", {}, ...copies.map((edge) => make("li", {}, `${edge.from === index ? "out" : "in"}: ${copyText(edge)}`))),
      report.copies.length ? make("button", { class: "link", onclick: () => report.showTab("copies") }, "All copies of the run") : ""] : [];
  };
  const describeScope = (box) => {
    const sums = ofPicture[box.ref];
    const slow = report.members[box.ref].filter((node) => timeShare(ofNode[node].us)).sort((a, b) => timeShare(ofNode[b].us) - timeShare(ofNode[a].us)).slice(0, 10);
    details.replaceChildren(make("h2", {}, pictures[box.ref].scope || box.label), rows([["nodes", String(sums.nodes)],
      ["time", timesText(sums.us)], ["results", sums.bytes ? bytesElement(sums.bytes) : ""],
      ["copy time", timesText(sums.copyUs)], ["copied", sums.copied ? bytesElement(sums.copied) : ""]]),
    make("p", {}, make("button", { onclick: () => report.showPicture(box.ref) }, "Open")), ...copyList(shown.box), ...linkList("Slowest", slow));
  };
  const showDetails = () => {
    const box = shown.box < 0 ? null : pictures[shown.picture].boxes[shown.box];
    if (!box) {
      const sums = ofPicture[shown.picture], picture = pictures[shown.picture];
      details.replaceChildren(make("h2", {}, picture.scope || picture.fn || "The graph"), rows([["nodes", String(sums.nodes)],
        ["in kernels", timesText(sums.us)], ["run", timesText(report.clocks.map((clock) => clock.us))],
        ["copy time", timesText(sums.copyUs)], ["copied", sums.copied ? bytesElement(sums.copied) : ""]]));
      if (shown.picture === data.root || shown.picture === report.first) details.append(document.getElementById("signature").content.cloneNode(true), ...(report.liveModel ? report.liveModel() : []));
      else if (picture.parent < 0 && callers.has(shown.picture)) details.append(...linkList("Called by", callers.get(shown.picture)));
      details.append(make("p", { class: "faint" }, "Click a box for its details. Double-click or Enter opens it."));
    } else if (box.kind === KIND.NODE) { describe(box.ref); details.append(...copyList(shown.box)); }
    else if (box.kind === KIND.SCOPE) describeScope(box);
    else details.replaceChildren(make("h2", {}, box.label), make("p", {}, "A box outside this scope. Enter goes there."));
  };

  // Arrows go to the nearest box in their direction.
  const DIRECTIONS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
  const neighbour = ([dx, dy]) => {
    const boxes = pictures[shown.picture].boxes;
    if (shown.box < 0) return 0;
    const [x, y] = centre(boxes[shown.box]);
    let best = -1, least = Infinity;
    boxes.forEach((box, index) => {
      const [bx, by] = centre(box), along = (bx - x) * dx + (by - y) * dy, across = Math.abs((bx - x) * dy) + Math.abs((by - y) * dx);
      if (along > 4 && along + 2 * across < least) { least = along + 2 * across; best = index; }
    });
    return best < 0 ? shown.box : best;
  };
  const goUp = () => {
    const picture = pictures[shown.picture];
    if (picture.parent >= 0) report.showPicture(picture.parent, pictures[picture.parent].boxes.findIndex((b) => b.kind === KIND.SCOPE && b.ref === shown.picture));
    else if (callers.has(shown.picture)) report.showNode(callers.get(shown.picture)[0]);
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (DIRECTIONS[event.key] && pictures[shown.picture].boxes.length) report.showPicture(shown.picture, neighbour(DIRECTIONS[event.key]));
    else if (event.key === "Enter" && shown.box >= 0) open(shown.picture, shown.box);
    else if (event.key === "Backspace") goUp();
    else if (event.key === "Escape") report.showPicture(shown.picture);
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit(true);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const bounds = canvas.getBoundingClientRect();
    if (event.ctrlKey || !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX)) zoom(Math.exp(-event.deltaY / 500), event.clientX - bounds.left, event.clientY - bounds.top);
    else { shown.x -= event.deltaX; shown.y -= event.shiftKey ? event.deltaY : 0; place(); }
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY }; });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    Object.assign(shown, { x: shown.x + event.clientX - drag.x, y: shown.y + event.clientY - drag.y });
    drag = { x: event.clientX, y: event.clientY };
    place();
  });
  window.addEventListener("pointerup", () => { drag = null; });
  document.getElementById("in").addEventListener("click", () => zoom(1.25));
  document.getElementById("out").addEventListener("click", () => zoom(0.8));
  document.getElementById("fit").addEventListener("click", () => fit(true));

  // An exported picture states the colours that the styles give, for it has no styles.
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"];
  report.exported = () => {
    const picture = pictures[shown.picture], svg = make("svg", { viewBox: `0 0 ${picture.width} ${picture.height}`,
      width: picture.width, height: picture.height, xmlns: "http://www.w3.org/2000/svg" });
    const copy = root.cloneNode(true), originals = root.querySelectorAll("*"), copies = copy.querySelectorAll("*");
    originals.forEach((element, index) => {
      const style = getComputedStyle(element);
      copies[index].removeAttribute("style");
      copies[index].removeAttribute("class");
      for (const key of KEPT) copies[index].setAttribute(key, style.getPropertyValue(key));
    });
    copy.removeAttribute("transform");
    svg.append(make("rect", { width: "100%", height: "100%", fill: getComputedStyle(canvas).backgroundColor }), copy);
    return new XMLSerializer().serializeToString(svg);
  };
  const save = report.save = (blob, name) => {
    const address = URL.createObjectURL(blob);
    make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  report.pngOf = (svg) => new Promise((resolve, reject) => {
    const picture = pictures[shown.picture], factor = Math.min(2, 8000 / Math.max(picture.width, picture.height));
    const image = new Image();
    image.onload = () => {
      const surface = make("canvas", { width: Math.ceil(picture.width * factor), height: Math.ceil(picture.height * factor) });
      surface.getContext("2d").drawImage(image, 0, 0, surface.width, surface.height);
      surface.toBlob(resolve, "image/png");
    };
    image.onerror = reject;
    image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  });
  document.getElementById("svg").addEventListener("click", () => save(new Blob([report.exported()], { type: "image/svg+xml" }), "graph.svg"));
  document.getElementById("png").addEventListener("click", async () => save(await report.pngOf(report.exported()), "graph.png"));
})();
