// An input that is a picture: a file, chosen, dropped or pasted. The browser decodes it; a canvas resizes it.

import { choiceRow, element, labelled, newId, selectOf } from "./dom.js";
import { pictureValue } from "./tensors.js";
import { scaledPixels, scalingChoices } from "./scaling.js";

const DEFAULT_SIDE = 224;
const LARGEST_SIDE = 4096;

export function pictureEditor(info, layout, { onChange, scaling, title }) {
  const settings = { scaling: scaling ?? (info.type.includes("int") ? "bytes" : "unit"), fit: "crop",
    width: layout.width || DEFAULT_SIDE, height: layout.height || DEFAULT_SIDE };
  const preview = element("canvas", { class: "picture", role: "img",
    "aria-label": "The picture as the model sees it" });
  const fault = element("p", { class: "fault", role: "alert" });
  const caption = element("figcaption", {});
  let bitmap = null;
  let fileName = "";

  async function take(file) {
    if (!file) return;
    fault.textContent = "";
    try {
      bitmap = await createImageBitmap(file);
      fileName = file.name;
    } catch {
      fault.textContent = `The browser cannot decode ${file.name || "this file"} as a picture.`;
      return;
    }
    change();
  }

  function paint() {
    Object.assign(preview, { width: settings.width, height: settings.height });
    figure.hidden = !bitmap;
    if (!bitmap) return;
    const context = preview.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.fillStyle = "#fff"; // under a picture with transparent parts
    context.fillRect(0, 0, preview.width, preview.height);
    context.drawImage(bitmap, ...sourceBox(bitmap, settings), 0, 0, preview.width, preview.height);
    caption.textContent = `${fileName}: ${bitmap.width} × ${bitmap.height}, the model sees ${settings.width} × `
      + settings.height;
  }

  function change() {
    paint();
    onChange(true);
  }

  function jsonText() {
    const { data } = preview.getContext("2d").getImageData(0, 0, preview.width, preview.height);
    const sized = { ...layout, height: settings.height, width: settings.width };
    return JSON.stringify(pictureValue(scaledPixels(data, layout.channels, settings.scaling), sized));
  }

  const fileInput = element("input", { type: "file", accept: "image/*", id: newId("file"), class: "hidden-text",
    "aria-label": `${title}: a picture`, change: () => take(fileInput.files[0]) });
  const zone = element("label", { class: "drop", for: fileInput.id }, element("strong", {}, "Choose a picture"),
    element("span", { class: "faint" }, "or drop it here, or paste it"));
  const figure = element("figure", { class: "picture-place" }, preview, caption);
  const node = element("div", { class: "picture-editor" }, fileInput, zone, fault, figure,
    element("div", { class: "settings" },
      info.type.includes("int") ? null : labelled("Numbers", selectOf(scalingChoices(layout.channels), settings.scaling,
        (chosen) => { settings.scaling = chosen; change(); })),
      labelled("Other proportions", choiceRow("Other proportions", [["crop", "cut"], ["stretch", "stretch"]], "crop",
        (chosen) => { settings.fit = chosen; change(); })),
      layout.width ? null : sideField("Width", "width"), layout.height ? null : sideField("Height", "height")));

  function sideField(text, key) {
    const input = element("input", { type: "number", min: 1, max: LARGEST_SIDE, value: settings[key], change: () => {
      settings[key] = Math.min(Math.max(Math.round(input.valueAsNumber) || DEFAULT_SIDE, 1), LARGEST_SIDE);
      change();
    } });
    return labelled(text, input);
  }

  listenToDrops(node, zone, take);
  paint();
  return { node, jsonText, focus: () => fileInput.focus(), isEmpty: () => bitmap === null,
    emptyText: "Choose a picture first.", isRunByStroke: true };
}

// The part of a picture that is resized: all of it, or the largest part of the right proportions, from the middle.
function sourceBox(bitmap, { fit, width, height }) {
  if (fit === "stretch") return [0, 0, bitmap.width, bitmap.height];
  const scale = Math.min(bitmap.width / width, bitmap.height / height);
  const [partWidth, partHeight] = [width * scale, height * scale];
  return [(bitmap.width - partWidth) / 2, (bitmap.height - partHeight) / 2, partWidth, partHeight];
}

function listenToDrops(node, zone, take) {
  node.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  node.addEventListener("dragleave", () => zone.classList.remove("over"));
  node.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  const paste = (event) => {
    if (!node.isConnected) {
      document.removeEventListener("paste", paste);
      return;
    }
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file && node.checkVisibility()) take(file);
  };
  document.addEventListener("paste", paste);
}
