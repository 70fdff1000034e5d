// Numbers as texts, and JSON with what JavaScript's own reader refuses or rounds.

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function bytesText(count) {
  let unit = 0;
  let amount = count;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit ? amount.toFixed(amount < 10 ? 1 : 0) : amount} ${UNITS[unit]}`;
}

export function durationText(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const parts = [];
  let rest = Math.floor(seconds);
  for (const [name, size] of units) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)} ${name}`);
    rest %= size;
  }
  return parts.join(" ") || "0 s";
}

// At most four significant digits; large whole numbers have groups.
export function numberText(number) {
  if (typeof number !== "number") return String(number);
  if (Number.isInteger(number)) return Math.abs(number) < 1e15 ? number.toLocaleString("en") : String(number);
  const size = Math.abs(number);
  return size >= 1e5 || size < 1e-3 ? number.toExponential(2) : String(Number(number.toPrecision(4)));
}

export function percentText(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent > 99.9 && percent < 100) return "> 99.9 %";
  return `${percent.toFixed(1)} %`;
}

export function shapeText(shape) {
  return shape === null ? "any shape" : `[${shape.map((size) => (size < 0 ? "?" : size)).join(", ")}]`;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG_INTEGER = /^-?\d{16,}$/;

// NaN and infinities are bare words in answers; integers beyond 53 bits would be rounded. Both become strings.
export function parseAnswer(text) {
  if (!/NaN|Infinity|\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text.replace(TOKENS, (token) =>
    (token.endsWith("NaN") || token.endsWith("Infinity") || LONG_INTEGER.test(token) ? `"${token}"` : token)));
}

// Raises SyntaxError for a text that the server would refuse.
export function checkJson(text) {
  JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|[-+]?\b(?:NaN|Infinity|Inf)\b/g, (token) =>
    (token.startsWith('"') ? token : "0")));
}

// The sizes of a nested list, by its first elements.
export function shapeOf(value) {
  const shape = [];
  for (let at = value; Array.isArray(at); at = at[0]) shape.push(at.length);
  return shape;
}
