// Types and shapes of inputs: which ways to fill them fit, and nested lists of numbers.

export const INTEGER_RANGE = [0, 255];
const CHANNELS = [1, 3, 4];
const SMALLEST_SIDE = 8;
const LARGEST_DRAWN_SIDE = 64;
const MOST_TABLE_CELLS = 64;
const MOST_EXAMPLE_VALUES = 4096;
const FLAT_DRAWINGS = [784]; // pixels of lists that are pictures for certain: MNIST's 28x28

export function isFloat(type) {
  return /^(b?float|half|double)/.test(type);
}

export function isInteger(type) {
  return /^u?int/.test(type);
}

// The layout of an input that may be a picture, or null. A size of 0 is the user's to choose.
export function pictureLayout(type, shape) {
  if (!shape || !(isFloat(type) || isInteger(type))) return null;
  const layout = layoutOfRank[shape.length]?.(shape) ?? null;
  return layout && isSide(layout.height) && isSide(layout.width) ? layout : null;
}

function isSide(size) {
  return size === 0 || size >= SMALLEST_SIDE;
}

function size(dimension) {
  return Math.max(dimension, 0);
}

const layoutOfRank = {
  4([batch, first, second, third]) {
    if (CHANNELS.includes(third)) {
      return { batch, height: size(first), width: size(second), channels: third, order: "last" };
    }
    if (CHANNELS.includes(first)) {
      return { batch, height: size(second), width: size(third), channels: first, order: "first" };
    }
    return null;
  },
  3([first, second, third]) {
    if (CHANNELS.includes(third)) {
      return { batch: 0, height: size(first), width: size(second), channels: third, order: "last" };
    }
    if (first <= 1 && second > 0 && third > 0) {
      return { batch: first, height: second, width: third, channels: 1, order: "none" };
    }
    return null;
  },
  2([first, second]) {
    const side = Math.sqrt(second);
    const isSquare = first <= 1 && Number.isInteger(side) && side <= LARGEST_DRAWN_SIDE;
    return isSquare ? { batch: first, height: side, width: side, channels: 1, order: "flat" } : null;
  },
};

// The ways to fill an input in, the most likely first.
export function formsOf({ type, shape }) {
  if (type === "string") return ["text", "file", "json"];
  const layout = pictureLayout(type, shape);
  const forms = [];
  if (layout) {
    const side = Math.max(layout.height, layout.width);
    if (layout.channels === 1 && side && side <= LARGEST_DRAWN_SIDE) forms.push("drawing");
    forms.push("picture");
  }
  const others = tableLayout(type, shape) ? ["table", "json"] : ["json"];
  const isUnsure = layout?.order === "flat" && !FLAT_DRAWINGS.includes(shape[1]);
  return isUnsure ? [...others, ...forms] : [...forms, ...others];
}

// The rows and columns of a table of values, or null where it would be none or too large. `grows`: rows may be added.
export function tableLayout(type, shape) {
  if (!shape || type === "string" || !(isFloat(type) || isInteger(type) || type === "bool")) return null;
  if (shape.length > 2 || shape.slice(1).some((count) => count < 1)) return null;
  const grows = shape.length > 0 && shape[0] < 0;
  const rows = shape.length === 2 && !grows ? shape[0] : 1;
  const columns = shape.length === 2 ? shape[1] : shape.length === 1 && !grows ? shape[0] : 1;
  return rows >= 1 && columns >= 1 && rows * columns <= MOST_TABLE_CELLS ? { rows, columns, grows } : null;
}

// A list of lists from values in row-major order.
export function nested(values, shape) {
  let lists = Array.from(values);
  for (const count of shape.slice(1).reverse()) {
    const groups = [];
    for (let at = 0; at < lists.length; at += count) groups.push(lists.slice(at, at + count));
    lists = groups;
  }
  return shape.length ? lists : lists[0];
}

// The value of an input from the pixels of a picture, in the order row, column, channel.
export function pictureValue(pixels, layout) {
  const { height, width, channels, order, batch } = layout;
  let value;
  if (order === "flat") value = Array.from(pixels);
  else if (order === "none") value = nested(pixels, [height, width]);
  else if (order === "last") value = nested(pixels, [height, width, channels]);
  else {
    value = Array.from({ length: channels }, (_, channel) =>
      nested(Array.from({ length: height * width }, (_, at) => pixels[at * channels + channel]), [height, width]));
  }
  return batch === 0 ? value : Array.from({ length: Math.max(batch, 1) }, () => value);
}

// A value of the right shape to begin with.
export function exampleValue({ type, shape }) {
  const sizes = (shape ?? []).map((count) => Math.max(count, 1));
  const zero = type === "string" ? "" : type === "bool" ? false : 0;
  const count = sizes.reduce((product, factor) => product * factor, 1);
  return count > MOST_EXAMPLE_VALUES ? [] : nested(new Array(count).fill(zero), sizes);
}
