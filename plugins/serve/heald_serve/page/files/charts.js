// Line charts as SVG: the last minutes, with the newest values as a text below.

import { element, svgElement } from "./dom.js";
import { SPAN_SECONDS } from "./samples.js";

const HEIGHT = 170;
const MARGIN = { left: 46, right: 10, top: 8, bottom: 20 };
const TICK_COUNT = 3;
const FEWEST_PIXELS = 220;

// A chart of `series`: rows of [key of the points, title, colour class]. `format`: a value as a text. `isLogarithmic`
// suits values of several sizes, such as a median and a tail.
export function lineChart({ title, series, format, least = 1, isLogarithmic = false }) {
  const place = element("div", { class: "plot" });
  const readout = element("figcaption", {});
  const node = element("figure", { class: "card chart" }, element("h3", {}, title), place, readout);
  let points = [];
  let pointed = null;

  function draw() {
    const width = Math.max(place.clientWidth, FEWEST_PIXELS);
    const time = timeAxis(points, width);
    const values = points.flatMap((point) => series.map(([key]) => point[key])).filter((value) => value !== null);
    const axis = isLogarithmic ? logarithmicAxis(values) : linearAxis(values, least);
    const y = (value) => HEIGHT - MARGIN.bottom - axis.share(value) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    const shown = pointed === null ? points.at(-1) : points[pointed];
    place.replaceChildren(svgElement("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
      "aria-label": `${title}, the last ${Math.round(time.span / 60)} minutes` },
    ...axis.ticks.flatMap((value) => [
      svgElement("path", { class: "grid", d: `M${MARGIN.left} ${y(value)}H${width - MARGIN.right}` }),
      svgElement("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value, true))]),
    ...timeTicks(time),
    ...series.map(([key, , colour]) => svgElement("path", { class: `line ${colour}`,
      d: linePath(points, key, time.x, y) })),
    shown && pointed !== null ? svgElement("path", { class: "pointer",
      d: `M${time.x(shown.seconds)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}` }) : null));
    readout.replaceChildren(...series.map(([key, name, colour]) => element("span", { class: "key" },
      element("span", { class: `swatch ${colour}` }), `${name} `,
      element("strong", {}, shown && shown[key] !== null ? format(shown[key]) : "–"))),
    element("span", { class: "faint" },
      pointed === null || !shown ? "" : `${Math.round(time.now - shown.seconds)} s ago`));
  }

  place.addEventListener("pointermove", (event) => {
    if (!points.length) return;
    const time = timeAxis(points, Math.max(place.clientWidth, FEWEST_PIXELS));
    const left = event.clientX - place.getBoundingClientRect().left;
    pointed = points.reduce((best, point, at) =>
      (Math.abs(time.x(point.seconds) - left) < Math.abs(time.x(points[best].seconds) - left) ? at : best), 0);
    draw();
  });
  place.addEventListener("pointerleave", () => {
    pointed = null;
    draw();
  });
  return { node, update(newPoints) {
    points = newPoints.filter((point) => point.seconds >= newPoints.at(-1).seconds - SPAN_SECONDS);
    if (pointed !== null && pointed >= points.length) pointed = null;
    draw();
  } };
}

// The axis begins with one minute, and grows with the points.
function timeAxis(points, width) {
  const now = points.at(-1)?.seconds ?? 0;
  const minutes = Math.ceil((now - (points[0]?.seconds ?? now)) / 60);
  const span = Math.min(Math.max(60 * minutes, 60), SPAN_SECONDS);
  const x = (seconds) => width - MARGIN.right - ((now - seconds) / span) * (width - MARGIN.left - MARGIN.right);
  return { now, span, x };
}

function timeTicks({ now, span, x }) {
  const step = span > 60 ? 60 : 20;
  const ticks = [];
  for (let seconds = step; seconds < span; seconds += step) {
    ticks.push(svgElement("text", { x: x(now - seconds), y: HEIGHT - 4, "text-anchor": "middle" },
      span > 60 ? `−${seconds / 60} min` : `−${seconds} s`));
  }
  return [...ticks, svgElement("text", { x: x(now), y: HEIGHT - 4, "text-anchor": "end" }, "now")];
}

function linearAxis(values, least) {
  const highest = Math.max(least, ...values);
  const size = highest / TICK_COUNT;
  const power = 10 ** Math.floor(Math.log10(size));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= size * 0.999) * power;
  const count = Math.ceil(highest / step - 1e-9);
  const ticks = Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(6)));
  return { ticks, share: (value) => value / (count * step) };
}

function logarithmicAxis(values) {
  const sizes = values.filter((value) => value > 0).map(Math.log10);
  const bottom = Math.floor(Math.min(...sizes, 0));
  const top = Math.max(Math.ceil(Math.max(...sizes, 1)), bottom + 1);
  const ticks = Array.from({ length: top - bottom + 1 }, (_, at) => Number((10 ** (bottom + at)).toPrecision(6)));
  return { ticks, share: (value) => Math.max((Math.log10(Math.max(value, 1e-9)) - bottom) / (top - bottom), 0) };
}

// A line through the values; a gap where a value is missing, a dot where a value has no neighbour.
function linePath(points, key, x, y) {
  let path = "";
  let isOpen = false;
  for (const point of points) {
    const value = point[key];
    if (value === null) {
      isOpen = false;
      continue;
    }
    const at = `${x(point.seconds).toFixed(1)} ${y(value).toFixed(1)}`;
    path += isOpen ? `L${at}` : `M${at}h0.01`;
    isOpen = true;
  }
  return path;
}
