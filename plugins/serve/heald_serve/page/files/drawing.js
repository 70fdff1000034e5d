// An input to draw: strokes on a canvas become the few pixels that the model sees.
//
// A stroke is a list of points in the canvas's own units. The pixels are averages over blocks of a finer canvas, so a
// thin line becomes faint and does not fall between two pixels. Data sets of digits have their digits in the middle, of
// one size; "Fit to frame" does the same to a drawing.

import { choiceRow, element, labelled, selectOf } from "./dom.js";
import { pictureValue } from "./tensors.js";
import { SCALINGS, rounded, scalingChoices } from "./scaling.js";

const LONGER_SIDE = 280;
const FINENESS = 10; // fine pixels on a side of a pixel
const KEY_STEP = 8;
const FAINTEST_INK = 24; // of 255

export function drawingEditor(info, layout, { onChange, scaling, title }) {
  const { height, width } = layout;
  const unit = LONGER_SIDE / Math.max(height, width);
  const strokes = [];
  const pen = { x: (width * unit) / 2, y: (height * unit) / 2, isDown: false, showsCursor: false };
  const settings = { scaling: scaling ?? (info.type.includes("int") ? "bytes" : "unit"), ink: "bright", fits: true,
    thickness: Math.max(unit, LONGER_SIDE * 0.075) };
  const canvas = element("canvas", { class: "drawing", width: width * unit, height: height * unit, tabindex: 0,
    role: "img", "aria-label": `${title}: a canvas to draw on. Arrow keys move the pen, the space bar puts it down.` });
  const preview = element("canvas", { class: "pixels", width, height, role: "img",
    "aria-label": "The drawing as the model sees it" });
  const fine = element("canvas", { width: width * FINENESS, height: height * FINENESS });

  function paint() {
    const context = canvas.getContext("2d");
    paintStrokes(context, strokes, settings.thickness);
    if (pen.showsCursor) paintCursor(context, pen);
    paintPixels(preview, inkOfPixels());
  }

  // The ink of each pixel, 0 to 1.
  function inkOfPixels() {
    const context = fine.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "#000";
    context.fillRect(0, 0, fine.width, fine.height);
    if (strokes.length) context.drawImage(canvasOfStrokes(), ...frameOfInk(), ...targetOfInk());
    return blockAverages(context.getImageData(0, 0, fine.width, fine.height).data, width, height);
  }

  function canvasOfStrokes() {
    const plain = element("canvas", { width: canvas.width, height: canvas.height });
    paintStrokes(plain.getContext("2d", { willReadFrequently: true }), strokes, settings.thickness);
    return plain;
  }

  let frame = [0, 0, canvas.width, canvas.height];

  function frameOfInk() {
    frame = settings.fits ? inkBox(canvasOfStrokes()) : [0, 0, canvas.width, canvas.height];
    return frame;
  }

  function targetOfInk() {
    if (!settings.fits) return [0, 0, fine.width, fine.height];
    const margin = Math.min(height, width) >= 20 ? 1 / 7 : 0; // MNIST: 20 of 28 pixels
    const scale = Math.min((fine.width * (1 - 2 * margin)) / frame[2], (fine.height * (1 - 2 * margin)) / frame[3]);
    const [targetWidth, targetHeight] = [frame[2] * scale, frame[3] * scale];
    return [(fine.width - targetWidth) / 2, (fine.height - targetHeight) / 2, targetWidth, targetHeight];
  }

  function jsonText() {
    const apply = SCALINGS[settings.scaling].apply;
    const bytes = inkOfPixels().map((ink) => 255 * (settings.ink === "bright" ? ink : 1 - ink));
    return JSON.stringify(pictureValue(bytes.map((byte) => rounded(apply(Math.round(byte), 0))), layout));
  }

  function change(isWhole) {
    paint();
    onChange(isWhole);
  }

  function removeStrokes(count) {
    strokes.splice(strokes.length - count, count);
    pen.isDown = false;
    change(true);
  }

  listenToPointer(canvas, strokes, change);
  listenToKeys(canvas, strokes, pen, change, () => removeStrokes(Math.min(1, strokes.length)));
  const thickness = element("input", { type: "range", min: unit / 3, max: LONGER_SIDE / 5, step: "any",
    value: settings.thickness, input: () => { settings.thickness = Number(thickness.value); paint(); },
    change: () => change(true) });
  const fits = element("input", { type: "checkbox", checked: true,
    change: () => { settings.fits = fits.checked; change(true); } });
  const node = element("div", { class: "drawing-editor" },
    element("div", { class: "drawing-place" }, canvas,
      element("div", { class: "row" },
        element("button", { type: "button", class: "small", click: () => removeStrokes(strokes.length) }, "Clear"),
        element("button", { type: "button", class: "small",
          click: () => removeStrokes(Math.min(1, strokes.length)) }, "Undo"))),
    element("div", { class: "drawing-settings" },
      element("figure", {}, preview, element("figcaption", {}, `the model's ${width} × ${height}`)),
      labelled("Pen", thickness),
      labelled("Numbers", selectOf(scalingChoices(1), settings.scaling, (chosen) => {
        settings.scaling = chosen;
        change(true);
      })),
      labelled("Ink", choiceRow("Ink", [["bright", "high"], ["dark", "low"]], "bright", (chosen) => {
        settings.ink = chosen;
        change(true);
      })),
      element("label", { class: "check" }, fits, "Fit to frame")));
  paint();
  return { node, jsonText, focus: () => canvas.focus(), isEmpty: () => strokes.length === 0,
    emptyText: "Draw something first.", isRunByStroke: true };
}

function listenToPointer(canvas, strokes, change) {
  let isDrawing = false;
  const pointOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * canvas.width) / box.width,
      ((event.clientY - box.top) * canvas.height) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    isDrawing = true;
    strokes.push([pointOf(event)]);
    change(false);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!isDrawing) return;
    for (const part of event.getCoalescedEvents?.() ?? []) strokes.at(-1).push(pointOf(part));
    strokes.at(-1).push(pointOf(event));
    change(false);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      if (isDrawing) change(true);
      isDrawing = false;
    });
  }
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function listenToKeys(canvas, strokes, pen, change, undo) {
  canvas.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (step) {
      pen.x = Math.min(Math.max(pen.x + step[0] * KEY_STEP, 0), canvas.width);
      pen.y = Math.min(Math.max(pen.y + step[1] * KEY_STEP, 0), canvas.height);
      if (pen.isDown && strokes.length) strokes.at(-1).push([pen.x, pen.y]);
    } else if (event.key === " ") {
      pen.isDown = !pen.isDown;
      if (pen.isDown) strokes.push([[pen.x, pen.y]]);
    } else if (event.key === "Backspace" || (event.key === "z" && event.ctrlKey)) {
      undo();
    } else {
      return;
    }
    event.preventDefault();
    pen.showsCursor = true;
    change(event.key === " " && !pen.isDown);
  });
  canvas.addEventListener("blur", () => {
    pen.showsCursor = pen.isDown = false;
    change(false);
  });
}

function paintStrokes(context, strokes, thickness) {
  context.fillStyle = "#000";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.strokeStyle = "#fff";
  context.lineWidth = thickness;
  context.lineCap = context.lineJoin = "round";
  for (const [first, ...others] of strokes) {
    context.beginPath();
    context.moveTo(...first);
    context.lineTo(...first);
    for (const point of others) context.lineTo(...point);
    context.stroke();
  }
}

function paintCursor(context, pen) {
  context.strokeStyle = pen.isDown ? "#f0883e" : "#58a6ff";
  context.lineWidth = 2;
  context.beginPath();
  context.arc(pen.x, pen.y, 7, 0, 2 * Math.PI);
  context.stroke();
}

function paintPixels(canvas, ink) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  ink.forEach((share, at) => image.data.set([255 * share, 255 * share, 255 * share, 255], 4 * at));
  context.putImageData(image, 0, 0);
}

// The box around all ink: left, top, width, height. The whole canvas where there is none.
function inkBox(canvas) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, width, height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let at = 0; at < width * height; at += 1) {
    if (data[4 * at] < FAINTEST_INK) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return right < 0 ? [0, 0, width, height] : [left, top, right - left + 1, bottom - top + 1];
}

function blockAverages(data, width, height) {
  const ink = new Array(width * height).fill(0);
  const fineWidth = width * FINENESS;
  for (let at = 0; at < data.length / 4; at += 1) {
    const x = Math.floor((at % fineWidth) / FINENESS);
    const y = Math.floor(at / fineWidth / FINENESS);
    ink[y * width + x] += data[4 * at];
  }
  return ink.map((sum) => sum / (255 * FINENESS * FINENESS));
}
