// The view of the traffic: requests, latency, queue and batches of the last minutes.

import { lineChart } from "./charts.js";
import { element, labelled, selectOf } from "./dom.js";
import { numberText } from "./numbers.js";

const perSecond = (value, isTick) =>
  `${numberText(Number(value.toFixed(value < 10 ? 1 : 0)))}${isTick ? "" : " a second"}`;
const milliseconds = (value) => (value < 1000 ? `${numberText(Number(value.toPrecision(3)))} ms`
  : `${numberText(Number((value / 1000).toPrecision(3)))} s`);
const count = (value) => numberText(Number(value.toFixed(1)));

export function trafficView() {
  const filter = element("div", { class: "filter" });
  const rate = lineChart({ title: "Requests a second", format: perSecond,
    series: [["answered", "answered", "first"], ["failed", "refused or failed", "bad"],
      ["runs", "runs of models", "second"]] });
  const latency = lineChart({ title: "Latency", format: milliseconds, isLogarithmic: true,
    series: [["median", "p50", "first"], ["tail", "p99", "third"], ["runMedian", "run, p50", "second"]] });
  const queue = lineChart({ title: "Requests that run or wait", format: count, series: [["pending", "now", "first"]] });
  const batches = lineChart({ title: "Rows in a batch", format: count, series: [["batchSize", "mean", "first"]] });
  const charts = element("div", { class: "charts" }, rate.node, latency.node, queue.node, batches.node);
  const node = element("div", { class: "view" },
    element("header", { class: "detail-head" }, element("h1", {}, "Traffic"), filter), charts,
    element("p", { class: "faint" }, "The page collects these figures while it is open. Latencies come from the ",
      "buckets of ", element("a", { href: "metrics" }, "/metrics"), ": they are within a bucket of the truth."));
  let chosen = "";
  let named = null;

  function update(state, history) {
    const names = history.modelNames();
    if (named !== names.join("\n")) {
      named = names.join("\n");
      if (!names.includes(chosen)) chosen = "";
      filter.replaceChildren(...(names.length > 1 ? [labelled("Model",
        selectOf([["", "all"], ...names.map((name) => [name, name])], chosen, (name) => {
          chosen = name;
          update(state, history);
        }))] : []));
    }
    batches.node.hidden = !state.server.batches;
    const points = history.points(chosen);
    for (const chart of [rate, latency, queue, batches]) chart.update(points);
  }

  return { node, update, title: () => "Traffic" };
}
