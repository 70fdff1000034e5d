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
    element("nav", { class: "side", "aria-label": "Models" }, element("h2", {}, "Models"), list), detail);
  let shown = "";
  let listed = "";
  let versionsPlace = null;

  function update(state) {
    const name = route[0] ?? state.models[0]?.name;
    const model = state.models.find((one) => one.name === name);
    const listKey = JSON.stringify(state.models);
    if (listKey !== listed) {
      listed = listKey;
      list.replaceChildren(...state.models.map((one) => modelItem(one, one.name === name)));
      list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    if (!model) {
      detail.replaceChildren(element("p", { class: "notice" }, state.models.length ? `No model is called ${name}.`
        : "The server has no models."));
      shown = "";
      return;
    }
    const version = chosenVersion(model, route[1]);
    const key = JSON.stringify([name, version?.version, version?.state, route]);
    if (key !== shown) {
      shown = key;
      versionsPlace = element("div", { class: "versions" });
      detail.replaceChildren(...detailParts(model, version, route, versionsPlace));
    }
    versionsPlace.replaceChildren(...versionChips(model));
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
  return element("li", {}, element("a", { href: modelAddress(model.name), "aria-current": isChosen ? "page" : null },
    element("span", { class: `dot ${toneOf(best)}` }), element("span", { class: "model-name" }, model.name),
    element("span", { class: "faint" }, best ? `version ${best.version}` : "no version"),
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

function detailParts(model, version, route, versionsPlace) {
  const available = model.versions.filter(({ state }) => state === "AVAILABLE");
  const choice = available.length > 1 ? labelled("Version", selectOf(
    [["", `highest (${available[0].version})`], ...available.map((one) => [one.version, versionText(one)])],
    route[1] ?? "",
    (chosen) => { location.hash = chosen ? modelAddress(model.name, chosen) : modelAddress(model.name); })) : null;
  const place = element("div", { class: "signature" });
  const head = element("header", { class: "detail-head" }, element("h1", {}, model.name), choice);
  const parts = [head, versionsPlace, place];
  if (!version || version.state !== "AVAILABLE") {
    const text = route[1] ? `Version ${route[1]} does not serve.` : "No version serves.";
    place.append(element("p", { class: "notice" }, text));
    return parts;
  }
  showSignatures(place, model.name, version.version, route[1] ?? "");
  return parts;
}

function versionText({ version, labels }) {
  return labels.length ? `${version} (${labels.join(", ")})` : version;
}

async function showSignatures(place, name, version, wantedVersion) {
  place.append(element("p", { class: "faint" }, "Reading the signatures …"));
  let document;
  try {
    document = await readVersion(name, version);
  } catch (error) {
    place.replaceChildren(element("p", { class: "fault", role: "alert" }, error.message));
    return;
  }
  const { signatures, class_labels: classLabels } = document;
  const form = element("div", { class: "forms" });
  const show = (chosen) => {
    const signature = signatures.find((one) => one.name === chosen);
    form.replaceChildren(describeSignature(signature),
      tryForm({ name, version: wantedVersion, signature, classLabels }));
  };
  const first = signatures.find((one) => one.name === "serving_default") ?? signatures[0];
  const names = signatures.map((one) => [one.name, one.name]);
  place.replaceChildren(...(names.length > 1 ? [labelled("Signature", selectOf(names, first.name, show))] : []), form);
  show(first.name);
}

function describeSignature(signature) {
  const tensors = (infos) => infos.flatMap((info, at) => [at ? ", " : "", element("code", {}, info.name),
    ` ${info.type} ${shapeText(info.shape)}`]);
  return element("p", { class: "faint flow" }, ...tensors(signature.inputs), " → ", ...tensors(signature.outputs));
}
