// The view of the machine: memory, devices, and the limits of the server.

import { bar } from "./answers.js";
import { element } from "./dom.js";
import { bytesText, durationText } from "./numbers.js";

const TONES = { ok: "good", found: "busy", unavailable: "bad" };
const NAMES = { host_visible: "works in the memory of the host" };
const WORDS = { ok: "in use", found: "not opened", unavailable: "unavailable" };

export function machineView() {
  const memory = element("section", { class: "card" });
  const devices = element("section", { class: "card" });
  const server = element("section", { class: "card" });
  const node = element("div", { class: "view machine" }, element("h1", {}, "Machine"), memory, devices, server);
  const shown = new Map();

  // A card that stays the same keeps the reader's selection.
  function show(card, facts, partsOf) {
    const key = JSON.stringify(facts);
    if (shown.get(card) !== key) card.replaceChildren(...partsOf(facts).filter(Boolean));
    shown.set(card, key);
  }

  return {
    node,
    title: () => "Machine",
    update(state) {
      show(memory, state.memory, memoryParts);
      show(devices, { devices: state.devices, unused: state.unused_device_types }, deviceParts);
      show(server, state.server, serverParts);
    },
  };
}

function memoryParts(memory) {
  const share = memory.limit ? memory.in_use / memory.limit : null;
  return [element("h2", {}, "Memory of models and requests"),
    element("p", { class: "amount" }, element("strong", {}, bytesText(memory.in_use ?? 0)),
      memory.limit ? ` of ${bytesText(memory.limit)}` : " in use"),
    share === null ? null : bar(share, share > 0.9 ? "full" : ""),
    element("p", { class: "faint" },
      [memory.peak === null ? null : `At most ${bytesText(memory.peak)} so far.`,
        memory.limit ? null : "No limit is set: [limits] memory sets one.",
        "Tensors below 1 MiB are not counted."].filter(Boolean).join(" "))];
}

function deviceParts({ devices, unused }) {
  return [element("h2", {}, "Devices"),
    devices.length ? element("ul", { class: "devices" }, ...devices.map(deviceItem))
      : element("p", { class: "faint" }, "No device was used so far."),
    unused.length ? element("p", { class: "faint" },
      `Not looked at, since no model asked for them: ${unused.join(", ")}.`) : null];
}

function deviceItem(device) {
  const facts = Object.entries(device.attributes)
    .map(([name, value]) => (value === "True" ? NAMES[name] ?? name : `${name} ${value}`));
  if (device.memory !== null) facts.unshift(`memory ${bytesText(device.memory)}`);
  return element("li", {}, element("span", { class: `dot ${TONES[device.status] ?? "off"}` }),
    element("strong", {}, device.name), element("span", {}, WORDS[device.status] ?? device.status),
    element("span", { class: "faint" }, [`plugin ${device.plugin}`, ...facts].join(" · ")),
    device.reason ? element("p", { class: "fault" }, [device.reason, device.remedy].filter(Boolean).join("; ")) : null);
}

function serverParts(server) {
  const rows = [["heald", server.version], ["up for", durationText(server.seconds)],
    ...(server.workers > 1 ? [["workers", `${server.workers}, each with the limits below`]] : []),
    ["runs at a time", server.run_threads], ["requests that may wait", server.most_queued],
    ["connections", `at most ${server.most_connections.toLocaleString("en")}`],
    ["body of a request", `at most ${bytesText(server.most_body_bytes)}`],
    ["batching", server.batches ? "on" : "off"], ["gRPC", server.grpc_port ? `port ${server.grpc_port}` : "off"]];
  return [element("h2", {}, "Server"), element("dl", { class: "facts" }, ...rows.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, String(value))]))];
}
