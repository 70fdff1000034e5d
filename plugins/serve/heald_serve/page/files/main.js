// The page: one view at a time, by the address's hash; the state and the metrics, polled.

import { announce, element } from "./dom.js";
import { machineView } from "./machine.js";
import { modelsView } from "./models.js";
import { History, readSample } from "./samples.js";
import { onTokenNeeded, readMetrics, readState } from "./server.js";
import { trafficView } from "./traffic.js";

const POLL_MILLISECONDS = 2000;
const VIEWS = { models: modelsView, traffic: trafficView, machine: machineView };
const main = document.getElementById("main");
const condition = document.getElementById("condition");
const history = new History();
let view = null;
let state = null;

function routeOf(hash) {
  const [name, ...parts] = hash.replace(/^#\/?/, "").split("/");
  return { name: name in VIEWS ? name : "models", parts: parts.filter(Boolean).map(decoded) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function showView() {
  const { name, parts } = routeOf(location.hash);
  const isNew = view !== null;
  view = VIEWS[name](parts);
  main.replaceChildren(view.node);
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${parts[0] ?? view.title()} · heald serve`;
  if (state) view.update(state, history);
  if (isNew) announce(view.title());
}

function showCondition(text, tone) {
  if (condition.textContent !== text) condition.replaceChildren(element("span", { class: `dot ${tone}` }), text);
}

async function poll() {
  try {
    state = await readState();
    history.add(readSample(await readMetrics(), performance.now() / 1000));
    const isReady = state.models.every(({ versions }) => versions.some((version) => version.state === "AVAILABLE"));
    showCondition(isReady ? "ready" : "not ready", isReady ? "good" : "busy");
    view.update(state, history);
  } catch (error) {
    console.error(error);
    showCondition(error.status ? `status ${error.status}` : "no answer", "bad");
  }
  setTimeout(poll, POLL_MILLISECONDS);
}

// The token's dialog. It cannot be left without a token: nothing of the page works without it.
function askForToken(wasRefused) {
  return new Promise((resolve) => {
    const input = element("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const dialog = element("dialog", { class: "card", "aria-labelledby": "token-title",
      close: () => { if (dialog.isConnected) dialog.showModal(); } },
      element("form", { submit: (event) => {
        event.preventDefault();
        dialog.remove();
        resolve(input.value.trim());
      } },
      element("h2", { id: "token-title" }, "The server's token"),
      wasRefused ? element("p", { class: "fault", role: "alert" }, "The server refused this token.") : null,
      element("label", { for: "token" }, "Requests need the token of --token_file. The page keeps it in memory alone."),
      input, element("button", { type: "submit", class: "primary" }, "Open")));
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

onTokenNeeded(askForToken);
addEventListener("hashchange", showView);
addEventListener("resize", () => { if (state) view.update(state, history); });
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash is the view's address
  main.focus();
});
showView();
poll();
