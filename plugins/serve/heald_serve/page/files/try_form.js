// The form of a signature: inputs, the answer, and the request as a line of curl.

import { answerParts } from "./answers.js";
import { announce, copyButton, element } from "./dom.js";
import { inputField, jsonEditor } from "./inputs.js";
import { ServerError, addressOf, hasToken, infer, inferencePath } from "./server.js";

const LONGEST_LINE = 100_000; // characters; a shell takes no longer word
const MOST_SHOWN_CHARACTERS = 400;
const FEW_INPUTS = 3;
const STROKE_PAUSE_MILLISECONDS = 120;
const EXAMPLE_METHODS = ["classify", "regress"];

export function tryForm({ name, version, signature, classLabels }) {
  const method = EXAMPLE_METHODS.includes(signature.method) ? signature.method : "predict";
  const path = inferencePath(name, version, method);
  const answer = element("div", { class: "answer" }, element("p", { class: "faint" }, "The answer comes here."));
  const curl = element("div", { class: "curl" });
  const runButton = element("button", { type: "submit", class: "primary" }, "Run");
  const time = element("span", { class: "faint time" });
  const options = { onChange: whenChanged, onSubmit: () => run(), isCompact: signature.inputs.length > FEW_INPUTS };
  const fields = method === "predict" ? signature.inputs.map((info) => inputField(info, options))
    : [exampleField(options)];
  let isRunning = false;
  let isRunWanted = false;
  let timer = 0;

  function bodyText() {
    const head = signature.name === "serving_default" ? "" : `"signature_name": ${JSON.stringify(signature.name)}, `;
    if (method !== "predict") return `{${head}"examples": ${fields[0].jsonText()}}`;
    const values = fields.map((field, at) => `${JSON.stringify(signature.inputs[at].name)}: ${field.jsonText()}`);
    return `{${head}"inputs": {${values.join(", ")}}}`;
  }

  // A drawing or a picture runs by itself; a text or a number waits for its end.
  function whenChanged(isWhole) {
    if (!isWhole || fields.length !== 1 || !fields[0].isRunByStroke() || fields[0].isEmpty()) return;
    clearTimeout(timer);
    timer = setTimeout(run, STROKE_PAUSE_MILLISECONDS);
  }

  async function run() {
    if (isRunning) {
      isRunWanted = true;
      return;
    }
    let body;
    try {
      body = bodyText();
    } catch {
      return; // the field shows its fault
    }
    isRunning = true;
    runButton.setAttribute("aria-busy", "true");
    showCurl(curl, path, body);
    await ask(body, fields.length === 1 ? fields[0].rowNames() : []);
    isRunning = false;
    runButton.removeAttribute("aria-busy");
    if (isRunWanted) {
      isRunWanted = false;
      run();
    }
  }

  async function ask(body, rowNames) {
    try {
      const { value, text, milliseconds } = await infer(path, body);
      time.textContent = `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
      const results = method === "predict" ? value.outputs : value.results;
      const shown = method === "predict" ? answerParts(results, signature.outputs, { classLabels, rowNames, text })
        : exampleResults(results, method, text);
      answer.replaceChildren(...shown.parts);
      announce(`Answer: ${shown.summary}`);
    } catch (error) {
      time.textContent = "";
      answer.replaceChildren(faultNode(error));
    }
  }

  const node = element("form", { class: "try", novalidate: true, submit: (event) => {
    event.preventDefault();
    run();
  } },
  element("section", { class: "card inputs", "aria-label": "Inputs" },
    fields.length ? null : element("p", { class: "faint" }, "The signature has no inputs."),
    element("div", { class: `fields ${options.isCompact ? "many" : ""}` }, ...fields.map((field) => field.node)),
    element("div", { class: "row" }, runButton, time)),
  element("section", { class: "card answers", "aria-label": "Answer" }, answer), curl);
  return node;
}

function exampleField(options) {
  const editor = jsonEditor({ example: '[{"x": 1.0}]' }, { ...options, title: "Examples" });
  const fault = element("p", { class: "fault", role: "alert" });
  return {
    node: element("section", { class: "input" }, element("h4", {}, "examples ",
      element("span", { class: "faint" }, "a list of objects: feature → value or list")), editor.node, fault),
    jsonText() {
      fault.textContent = "";
      try {
        return editor.jsonText();
      } catch (error) {
        fault.textContent = error.message;
        throw error;
      }
    },
    isEmpty: () => false, isRunByStroke: () => false, rowNames: () => [], focus: editor.focus,
  };
}

// Classes with scores, or a number, for each example.
function exampleResults(results, method, text) {
  if (method === "regress") {
    return answerParts(results, [{ name: "results", type: "float32" }], { classLabels: {}, rowNames: [], text });
  }
  const scores = results.map((row) => row.map(([, score]) => score));
  const labels = results.map((row) => row.map(([label]) => label));
  return answerParts({ scores, labels }, [{ name: "scores", type: "float32" }, { name: "labels", type: "string" }],
    { classLabels: {}, rowNames: [], text });
}

function faultNode(error) {
  const title = error instanceof ServerError ? `Status ${error.status}` : "No answer";
  const text = error instanceof ServerError ? error.message : `The request failed: ${error.message}`;
  return element("div", { class: "problem", role: "alert" }, element("strong", {}, title), element("p", {}, text));
}

function showCurl(place, path, body) {
  const address = addressOf(path);
  const token = hasToken() ? "-H \"Authorization: Bearer $TOKEN\" " : "";
  const line = (data) => `curl ${token}-d ${data} ${shellWord(address)}`;
  const isLong = body.length > LONGEST_LINE;
  const data = shellWord(body);
  const shownData = data.length > MOST_SHOWN_CHARACTERS ? `${data.slice(0, MOST_SHOWN_CHARACTERS)} … '` : data;
  place.replaceChildren(element("section", { class: "card", "aria-label": "Request" },
    element("header", { class: "row" }, element("h4", {}, "The request"),
      copyButton(() => line(isLong ? "@request.json" : data), "Copy"), isLong ? saveButton(body) : null),
    element("pre", { tabindex: 0 }, isLong ? line("@request.json") : line(shownData)),
    isLong ? element("p", { class: "faint hint" }, `The body has ${body.length.toLocaleString("en")} characters, more `
      + "than a shell takes in a word: save it first.") : null));
}

function saveButton(body) {
  return element("button", { type: "button", class: "small", click: () => {
    const address = URL.createObjectURL(new Blob([body], { type: "application/json" }));
    element("a", { href: address, download: "request.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  } }, "Save request.json");
}

function shellWord(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
