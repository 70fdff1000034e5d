// Samples of the metrics, and series from them. A sample has the counters since the server's start; the difference of
// two neighbours is a point of a chart. The page keeps the last minutes, and forgets them when it is closed.

export const SPAN_SECONDS = 300;
const LINE = /^([A-Za-z_]\w*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const PREFIX = "heald_serve_";

export function readSample(text, seconds) {
  const sample = { seconds, models: new Map(), batchRows: 0, batchRuns: 0, pending: 0 };
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (match) READERS[match[1].slice(PREFIX.length)]?.(sample, labelsOf(match[2] ?? ""), Number(match[3]));
  }
  return sample;
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one));
  }
  return labels;
}

function modelOf(sample, { model_name: name }) {
  if (!sample.models.has(name)) {
    sample.models.set(name, { answered: 0, failed: 0, requests: new Map(), runs: new Map() });
  }
  return sample.models.get(name);
}

function addBucket(buckets, limit, count) {
  buckets.set(limit, (buckets.get(limit) ?? 0) + count);
}

const READERS = {
  request_count(sample, labels, count) {
    modelOf(sample, labels)[labels.status === "OK" ? "answered" : "failed"] += count;
  },
  request_latency_bucket(sample, labels, count) {
    if (labels.entrypoint !== "") addBucket(modelOf(sample, labels).requests, labels.le, count); // "": reads of states
  },
  runtime_latency_bucket(sample, labels, count) {
    addBucket(modelOf(sample, labels).runs, labels.le, count);
  },
  batching_session_processed_batch_size_sum(sample, _, rows) {
    sample.batchRows += rows;
  },
  batching_session_processed_batch_size_count(sample, _, runs) {
    sample.batchRuns += runs;
  },
  pending_requests(sample, _, count) {
    sample.pending = count;
  },
};

// The samples of the last minutes. A server that started again begins anew.
export class History {
  constructor() {
    this.samples = [];
  }

  add(sample) {
    const last = this.samples.at(-1);
    if (last && totalOf(sample) < totalOf(last)) this.samples = [];
    this.samples.push(sample);
    while (this.samples[0].seconds < sample.seconds - SPAN_SECONDS - 10) this.samples.shift();
  }

  modelNames() {
    return [...(this.samples.at(-1)?.models.keys() ?? [])].filter((name) => name !== "");
  }

  // A point for each pair of neighbours. `name`: of a model, or "" for all.
  points(name) {
    const points = [];
    for (let at = 1; at < this.samples.length; at += 1) {
      points.push(pointOf(this.samples[at - 1], this.samples[at], name));
    }
    return points;
  }
}

function totalOf(sample) {
  let total = sample.batchRuns;
  for (const model of sample.models.values()) total += model.answered + model.failed + (model.runs.get("+Inf") ?? 0);
  return total;
}

function pointOf(before, after, name) {
  const seconds = after.seconds - before.seconds;
  const sums = { answered: 0, failed: 0, requests: new Map(), runs: new Map() };
  for (const [model, counts] of after.models) {
    if (name !== "" && model !== name) continue;
    const earlier = before.models.get(model);
    for (const key of ["answered", "failed"]) sums[key] += counts[key] - (earlier?.[key] ?? 0);
    for (const key of ["requests", "runs"]) {
      for (const [limit, count] of counts[key]) addBucket(sums[key], limit, count - (earlier?.[key].get(limit) ?? 0));
    }
  }
  const batchRuns = after.batchRuns - before.batchRuns;
  return {
    seconds: after.seconds, answered: sums.answered / seconds, failed: sums.failed / seconds,
    runs: (sums.runs.get("+Inf") ?? 0) / seconds, pending: after.pending,
    median: quantile(sums.requests, 0.5), tail: quantile(sums.requests, 0.99), runMedian: quantile(sums.runs, 0.5),
    batchSize: batchRuns > 0 ? (after.batchRows - before.batchRows) / batchRuns : null,
  };
}

// A quantile in milliseconds, from counts below limits in microseconds; null without a count. Within a bucket the
// limits grow by a factor, so the place between them does, too.
export function quantile(buckets, share) {
  const rows = [...buckets].filter(([limit]) => limit !== "+Inf").map(([limit, count]) => [Number(limit), count])
    .sort((one, other) => one[0] - other[0]);
  const total = buckets.get("+Inf") ?? 0;
  if (!total) return null;
  const wanted = share * total;
  let [lower, below] = [rows[0]?.[0] / 2 || 1, 0];
  for (const [limit, count] of rows) {
    if (count >= wanted) return (lower * (limit / lower) ** ((wanted - below) / Math.max(count - below, 1e-9))) / 1000;
    [lower, below] = [limit, count];
  }
  return lower / 1000;
}
