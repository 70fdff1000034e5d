// Answers: classes as bars, pictures, single values, tables; and always the JSON.

import { choiceRow, copyButton, element, svgElement } from "./dom.js";
import { numberText, percentText, shapeOf, shapeText } from "./numbers.js";
import { pictureLayout } from "./tensors.js";

const MOST_BARS = 10;
const MOST_ROWS = 50;
const MOST_COLUMNS = 16;
const MOST_PICTURES = 8;
const MOST_JSON_CHARACTERS = 20_000;
const FEW_CLASSES = 20;
const IMAGENET_CLASSES = [1000, 1001];
const SHARES_TOLERANCE = 0.02;
const PICTURE_NAME = /image|picture|mask|depth|heat|segment/i;
const CLASS_NAME = /prob|score|logit|class|softmax|predict|label/i;

// The parts of an answer. `outputs`: the signature's. `classLabels`: lists of names by their length.
export function answerParts(value, outputs, { classLabels, rowNames, text }) {
  const values = outputs.length === 1 ? { [outputs[0].name]: value } : value;
  const described = outputs.filter(({ name }) => name in values)
    .map((info) => describeOutput(info, values, classLabels, rowNames));
  described.sort((one, other) => one.order - other.order);
  const distributions = described.filter(({ order }) => order === 0);
  const parts = described.map((output) => outputPart(output, isRepeated(output, distributions)));
  return { parts: [...parts, jsonPart(text)], summary: described[0]?.summary ?? "" };
}

// Logits, and names of classes, say again what probabilities of the same classes say.
function isRepeated({ info, order, shape }, distributions) {
  return (order === 2 || info.type === "string") && distributions.some((other) => other.shape.join() === shape.join());
}

function outputPart({ info, shape, view }, isFolded) {
  const title = [info.name, " ", element("span", { class: "faint" }, `${info.type} ${shapeText(shape)}`)];
  if (isFolded) {
    return element("details", { class: "output" }, element("summary", {}, element("strong", {}, title)), view);
  }
  return element("section", { class: "output" }, element("h4", {}, title), view);
}

function describeOutput(info, values, classLabels, rowNames) {
  const value = values[info.name];
  const shape = shapeOf(value);
  const view = { info, shape };
  if (shape.length === 0 || (shape.length <= 2 && shape.every((size) => size === 1))) {
    const single = [value].flat(2)[0];
    return { ...view, order: 1, summary: `${info.name} is ${numberText(single)}`,
      view: element("p", { class: "single" }, numberText(single)) };
  }
  if (shape.includes(0)) {
    return { ...view, order: 4, view: element("p", { class: "faint" }, "No values."), summary: "" };
  }
  if (shape.length === 2 && typeof value[0][0] === "number") {
    return describeScores(view, value, values, classLabels, rowNames);
  }
  const layout = pictureLayout(info.type, shape);
  if (layout && isPicture(info, layout)) {
    return { ...view, order: 2, view: picturesView(value, layout), summary: `${info.name} is a picture` };
  }
  if (shape.length <= 2) {
    return { ...view, order: 3, view: tableView(value, shape, rowNames),
      summary: `${info.name} has ${shape.join(" by ")} values` };
  }
  return { ...view, order: 4, view: numbersSummary(value.flat(Infinity)),
    summary: `${info.name} has ${shape.join(" by ")} values` };
}

// Without a dimension of channels a square is a picture, and another rectangle only by its name: it may be a sequence.
function isPicture(info, { order, height, width }) {
  return order === "none" ? height === width || PICTURE_NAME.test(info.name) : order !== "flat";
}

// Rows of numbers are scores of classes, or vectors such as embeddings. Where names and sizes do not tell, the reader
// chooses.
function describeScores({ info, shape }, value, values, classLabels, rowNames) {
  const names = namesBeside(info, shape, values) ?? value.map(() => classLabels[shape[1]] ?? null);
  const isDistribution = value.every(isShares);
  const areClasses = shape[1] > 1 && (isDistribution || names[0] !== null || CLASS_NAME.test(info.name)
    || shape[1] <= FEW_CLASSES || IMAGENET_CLASSES.includes(shape[1]));
  const rows = value.map((scores, at) => ({ values: scores, names: names[at] }));
  const views = {
    classes: () => classesView(rows, rowNames, isDistribution),
    values: () => (shape[1] > MOST_COLUMNS ? vectorsView(value, rowNames) : tableView(value, shape, rowNames)),
  };
  const place = element("div", {}, views[areClasses ? "classes" : "values"]());
  const choice = isDistribution || shape[1] <= FEW_CLASSES ? null : choiceRow(`${info.name} as`,
    [["classes", "Greatest"], ["values", "All values"]], areClasses ? "classes" : "values",
    (chosen) => place.replaceChildren(views[chosen]()));
  return { info, shape, order: isDistribution ? 0 : areClasses ? 2 : 3,
    view: element("div", { class: "scores" }, choice, place),
    summary: areClasses ? summaryOf(rows[0], isDistribution) : `${info.name} has ${shape.join(" by ")} values` };
}

// The strings of another output of this shape: a model that returns classes with their scores.
function namesBeside(info, shape, values) {
  const names = Object.entries(values).find(([name, value]) => name !== info.name && Array.isArray(value)
    && shapeOf(value).join() === shape.join() && typeof value[0][0] === "string" && CLASS_NAME.test(name));
  return names?.[1] ?? null;
}

function isShares(values) {
  const sum = values.reduce((total, number) => total + number, 0);
  return values.every((number) => number >= 0 && number <= 1 + 1e-6) && Math.abs(sum - 1) < SHARES_TOLERANCE;
}

function className(row, index) {
  return row.names?.[index] || `class ${index}`;
}

function bestOf(row, count) {
  return row.values.map((value, index) => ({ value, index }))
    .sort((one, other) => other.value - one.value || one.index - other.index).slice(0, count);
}

function summaryOf(row, isDistribution) {
  const [best] = bestOf(row, 1);
  return `${className(row, best.index)}, ${isDistribution ? percentText(best.value) : numberText(best.value)}`;
}

function classesView(rows, rowNames, isDistribution) {
  if (rows.length === 1) return barList(rows[0], isDistribution, MOST_BARS);
  return element("ol", { class: "answer-rows" }, ...rows.slice(0, MOST_ROWS).map((row, at) => element("li", {},
    element("p", { class: "row-name" }, rowNames[at] ?? `row ${at + 1}`), barList(row, isDistribution, 3))),
  rows.length > MOST_ROWS ? element("li", { class: "faint" }, `${rows.length - MOST_ROWS} more rows`) : null);
}

function barList(row, isDistribution, count) {
  const best = bestOf(row, count);
  const lowest = isDistribution ? 0 : Math.min(0, ...row.values);
  const highest = isDistribution ? 1 : Math.max(...row.values);
  const rest = row.values.length - best.length;
  return element("div", {},
    element("ol", { class: "bars" }, ...best.map(({ value, index }, rank) => {
      const share = highest > lowest ? (value - lowest) / (highest - lowest) : 0;
      return element("li", { class: rank === 0 ? "best" : "" },
        element("span", { class: "bar-name" }, className(row, index)), bar(share),
        element("span", { class: "bar-value" }, isDistribution ? percentText(value) : numberText(value)));
    })),
    rest > 0 ? element("p", { class: "faint hint" }, `${rest.toLocaleString("en")} more classes`) : null);
}

export function bar(share, kind = "") {
  const width = Math.max(Math.min(share, 1), 0) * 100;
  return svgElement("svg", { class: `bar ${kind}`, viewBox: "0 0 100 8", preserveAspectRatio: "none",
    "aria-hidden": "true" },
  svgElement("rect", { class: "bar-back", width: 100, height: 8 }),
  svgElement("rect", { class: "bar-front", width: Math.max(width, share > 0 ? 0.6 : 0), height: 8 }));
}

function picturesView(value, layout) {
  const pictures = layout.batch === 0 ? [value] : value.slice(0, MOST_PICTURES);
  return element("div", { class: "pictures" }, ...pictures.map((picture, at) => pictureCanvas(picture, layout, at)));
}

// A picture over its own range: 0 to 255, 0 to 1, -1 to 1, or from its least number to its greatest.
function pictureCanvas(picture, { height, width, channels, order }, at) {
  const canvas = element("canvas", { width, height, class: "pixels output-picture", role: "img",
    "aria-label": `picture ${at + 1} of the answer` });
  const numbers = picture.flat(2).map(Number);
  const [least, greatest] = rangeOf(numbers);
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const place = (pixel, channel) => (order === "first" ? channel * height * width + pixel : pixel * channels + channel);
  for (let pixel = 0; pixel < height * width; pixel += 1) {
    for (let channel = 0; channel < 4; channel += 1) {
      const source = channels === 1 ? Math.min(channel, 0) : channel;
      const isOpaque = channel === 3 && channels < 4;
      image.data[4 * pixel + channel] = isOpaque ? 255
        : (255 * (numbers[place(pixel, source)] - least)) / (greatest - least);
    }
  }
  context.putImageData(image, 0, 0);
  return element("figure", {}, canvas, element("figcaption", {},
    `${width} × ${height}, ${numberText(least)} to ${numberText(greatest)}`));
}

function rangeOf(numbers) {
  const [least, greatest] = extremes(numbers);
  if (least >= 0 && greatest <= 1) return [0, 1];
  if (least >= -1 && greatest <= 1) return [-1, 1];
  if (least >= 0 && greatest <= 255 && greatest > 32) return [0, 255];
  return [least, greatest > least ? greatest : least + 1];
}

function extremes(numbers) {
  let [least, greatest] = [Infinity, -Infinity];
  for (const number of numbers) {
    if (number < least) least = number;
    if (number > greatest) greatest = number;
  }
  return [least, greatest];
}

function tableView(value, shape, rowNames) {
  const rows = shape.length === 1 ? value.map((cell) => [cell]) : value;
  const areNumbers = typeof rows[0][0] === "number";
  return element("div", {}, element("div", { class: "scroll" }, element("table", { class: areNumbers ? "numbers" : "" },
    element("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row, at) => element("tr", {},
      element("th", { scope: "row" }, rowNames[at] ?? String(at + 1)),
      row.slice(0, MOST_COLUMNS).map((cell) => element("td", {}, cellText(cell)))))))),
  rows.length > MOST_ROWS || rows[0].length > MOST_COLUMNS
    ? element("p", { class: "faint hint" }, "The table is cut; the JSON has all values.") : null);
}

function cellText(cell) {
  if (cell !== null && typeof cell === "object") {
    return "b64" in cell ? `${cell.b64.length} base64 characters` : JSON.stringify(cell);
  }
  return numberText(cell);
}

function vectorsView(rows, rowNames) {
  return element("div", {}, ...rows.slice(0, MOST_PICTURES).map((row, at) => element("div", { class: "vector" },
    rows.length > 1 ? element("p", { class: "row-name" }, rowNames[at] ?? `row ${at + 1}`) : null,
    columnsChart(row), numbersSummary(row))));
}

function columnsChart(numbers) {
  const [least, greatest] = extremes([0, ...numbers]);
  const height = 60;
  const y = (number) => height - ((number - least) / (greatest - least || 1)) * height;
  return svgElement("svg", { class: "columns", viewBox: `0 0 ${numbers.length} ${height}`, preserveAspectRatio: "none",
    role: "img", "aria-label": `${numbers.length} values` },
  svgElement("path", { d: numbers.map((number, at) => `M${at + 0.5} ${y(0)}V${y(number)}`).join("") }));
}

function numbersSummary(values) {
  const numbers = values.filter((value) => typeof value === "number");
  if (!numbers.length) return element("p", { class: "faint" }, `${values.length.toLocaleString("en")} values`);
  const [least, greatest] = extremes(numbers);
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return element("p", { class: "faint" }, `${values.length.toLocaleString("en")} values from ${numberText(least)} to `
    + `${numberText(greatest)}, mean ${numberText(mean)}`);
}

function jsonPart(text) {
  const isCut = text.length > MOST_JSON_CHARACTERS;
  return element("details", { class: "json" }, element("summary", {}, "The answer as JSON"),
    element("pre", { tabindex: 0 }, isCut ? `${text.slice(0, MOST_JSON_CHARACTERS)} …` : text), copyButton(() => text));
}
