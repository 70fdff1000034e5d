// The view of models: their versions and states, and the form of a signature.

import { element, labelled, selectOf } from "./dom.js";
import { shapeText } from "./numbers.js";
import { readVersion } from "./server.js";
import { tryForm } from "./try_form.js";

const TONES = { AVAILABLE: "good", LOADING: "busy", START: "busy", UNLOADING: "busy", END: "off" };
const WORDS = { AVAILABLE: "available", LOADING: "loading", START: "waits to load", UNLOADING: "unloading",
  END: "ended" };

export function modelsView(route) {
  const list = element("ul", { class: "model-list" });
  const detail = element("div", { class: "detail" });
  const node = element("div", { class: "models" },
    element("nav", { class: "side", "aria-label": "Models" }, element("p", { class: "side-title" }, "Models"), list),
    detail);
  let listed = "";
  let shown = "";
  let versions = null;
  let signatures = null;

  function update(state) {
    const listKey = JSON.stringify(state.models);
    if (listKey === listed) return;
    listed = listKey;
    const name = route[0] ?? state.models[0]?.name;
    const model = state.models.find((one) => one.name === name);
    list.replaceChildren(...state.models.map((one) => modelItem(one, one.name === name)));
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (model) showModel(model);
    else showNothing(state.models.length ? `No model is called ${name}.` : "The server has no models.");
  }

  function showNothing(text) {
    detail.replaceChildren(element("p", { class: "notice" }, text));
    shown = "";
  }

  // The parts below stay while they tell the truth, so that no input is lost when another version comes.
  function showModel(model) {
    const version = chosenVersion(model, route[1]);
    const isServed = version?.state === "AVAILABLE";
    const key = JSON.stringify([model.name, isServed, availableVersions(model)]);
    if (key !== shown) {
      const keeps = shown !== "" && isServed && signatures !== null;
      shown = key;
      versions = element("div", { class: "versions" });
      if (!keeps) signatures = isServed ? signaturesPart(model.name, route[1] ?? "") : null;
      const text = route[1] ? `Version ${route[1]} does not serve.` : "No version serves.";
      detail.replaceChildren(detailHead(model, route[1] ?? ""), versions,
        signatures?.node ?? element("p", { class: "notice" }, text));
      signatures?.read(version.version);
    }
    versions.replaceChildren(...versionChips(model));
  }

  return { node, update, title: () => "Models" };
}

export function modelAddress(...parts) {
  return `#/models/${parts.map(encodeURIComponent).join("/")}`;
}

function chosenVersion(model, wanted) {
  if (wanted) return model.versions.find(({ version }) => version === wanted) ?? null;
  return model.versions.find(({ state }) => state === "AVAILABLE") ?? null;
}

function modelItem(model, isChosen) {
  const best = chosenVersion(model) ?? model.versions[0];
  const state = best?.state ?? "START";
  const failed = model.versions.filter((version) => version !== best && version.state === "END" && version.error)
    .map(({ version }) => version);
  return element("li", {}, element("a", { href: modelAddress(model.name), "aria-current": isChosen ? "page" : null },
    element("span", { class: `dot ${toneOf(best)}` }), element("span", { class: "model-name" }, model.name),
    element("span", { class: "faint" }, best ? `version ${best.version}` : "no version",
      failed.length ? element("span", { class: "fault" }, `, ${failed.join(", ")} failed`) : null),
    element("span", { class: "hidden-text" }, WORDS[state])));
}

function toneOf(version) {
  if (!version) return "off";
  return version.error && version.state !== "AVAILABLE" ? "bad" : TONES[version.state] ?? "off";
}

function versionChips(model) {
  if (!model.versions.length) return [element("p", { class: "notice" }, "No version of this model was found.")];
  return model.versions.map((version) => element("div", { class: `version ${toneOf(version)}` },
    element("span", { class: `dot ${toneOf(version)}` }), element("span", {}, `version ${version.version}`),
    element("span", { class: "faint" }, version.error && version.state === "END" ? "failed" : WORDS[version.state]),
    ...version.labels.map((label) => element("span", { class: "label" }, label)),
    version.error ? element("p", { class: "fault" }, version.error) : null));
}

function availableVersions(model) {
  return model.versions.filter(({ state }) => state === "AVAILABLE");
}

function detailHead(model, wantedVersion) {
  const available = availableVersions(model);
  const choice = available.length > 1 ? labelled("Version", selectOf(
    [["", `highest (${available[0].version})`], ...available.map((one) => [one.version, versionText(one)])],
    wantedVersion,
    (chosen) => { location.hash = chosen ? modelAddress(model.name, chosen) : modelAddress(model.name); })) : null;
  return element("header", { class: "detail-head" }, element("h1", {}, model.name), choice);
}

function versionText({ version, labels }) {
  return labels.length ? `${version} (${labels.join(", ")})` : version;
}

// The signatures of a model, and the form of the chosen one. `read` shows those of another version.
function signaturesPart(name, wantedVersion) {
  const node = element("div", { class: "signature" }, element("p", { class: "faint" }, "Reading the signatures …"));
  let shown = "";

  async function read(version) {
    try {
      const { signatures, class_labels: classLabels } = await readVersion(name, version);
      const key = JSON.stringify([signatures, classLabels]);
      if (key !== shown) show(signatures, classLabels);
      shown = key;
    } catch (error) {
      node.replaceChildren(element("p", { class: "fault", role: "alert" }, error.message));
      shown = "";
    }
  }

  function show(signatures, classLabels) {
    const form = element("div", { class: "forms" });
    const choose = (chosen) => {
      const signature = signatures.find((one) => one.name === chosen);
      form.replaceChildren(describeSignature(signature),
        tryForm({ name, version: wantedVersion, signature, classLabels }));
    };
    const first = signatures.find((one) => one.name === "serving_default") ?? signatures[0];
    const names = signatures.map((one) => [one.name, one.name]);
    const choice = names.length > 1 ? [labelled("Signature", selectOf(names, first.name, choose))] : [];
    node.replaceChildren(...choice, form);
    choose(first.name);
  }

  return { node, read };
}

function describeSignature(signature) {
  const tensors = (infos) => infos.flatMap((info, at) => [at ? ", " : "", element("code", {}, info.name),
    ` ${info.type} ${shapeText(info.shape)}`]);
  return element("p", { class: "faint flow" }, ...tensors(signature.inputs), " → ", ...tensors(signature.outputs));
}
