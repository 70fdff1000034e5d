// The server: its documents, the metrics, and inferences. The token is kept here, in memory, and nowhere else.

import { parseAnswer } from "./numbers.js";

let token = "";
let askForToken = null;
let tokenAnswer = null; // one question at a time, however many requests need its answer

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// `ask` gets true after a token that was refused, and returns a promise of the next.
export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function hasToken() {
  return token !== "";
}

export function addressOf(path) {
  return new URL(path, document.baseURI).href;
}

async function request(path, options = {}) {
  const sentToken = token;
  const headers = sentToken ? { Authorization: `Bearer ${headerText(sentToken)}` } : {};
  const answer = await fetch(addressOf(path), { ...options, headers, cache: "no-store" });
  if (answer.status !== 401) return answer;
  if (sentToken === token) await renewToken(sentToken !== "");
  return request(path, options);
}

// A header has a byte for each character; the server compares the bytes of UTF-8.
function headerText(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

async function renewToken(wasRefused) {
  tokenAnswer ??= askForToken(wasRefused).finally(() => { tokenAnswer = null; });
  token = await tokenAnswer;
}

async function textOf(answer) {
  const text = await answer.text();
  if (answer.ok) return text;
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // an answer of something between the page and the server
  }
  throw new ServerError(answer.status, message || `the server answered with the status ${answer.status}`);
}

export async function readState() {
  return JSON.parse(await textOf(await request("page/state.json")));
}

export async function readMetrics() {
  return textOf(await request("metrics"));
}

export async function readVersion(name, version) {
  const query = new URLSearchParams(version ? { name, version } : { name });
  return JSON.parse(await textOf(await request(`page/version.json?${query}`)));
}

export function inferencePath(name, version, method) {
  const place = version ? `/versions/${version}` : "";
  return `v1/models/${encodeURIComponent(name)}${place}:${method}`;
}

// The answer of an inference, its text, and the milliseconds between request and answer.
export async function infer(path, body) {
  const start = performance.now();
  const text = await textOf(await request(path, { method: "POST", body }));
  const milliseconds = performance.now() - start;
  return { value: parseAnswer(text), text, milliseconds };
}
