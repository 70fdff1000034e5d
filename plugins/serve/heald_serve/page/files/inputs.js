// Editors of inputs. Each has a node, `jsonText()` for the request, and `focus()`; `jsonText` raises InputError.

import { drawingEditor } from "./drawing.js";
import { choiceRow, element, newId } from "./dom.js";
import { checkJson, shapeText } from "./numbers.js";
import { pictureEditor } from "./picture.js";
import { exampleValue, formsOf, isInteger, pictureLayout, tableLayout } from "./tensors.js";

const TITLES = { drawing: "Drawing", picture: "Picture", table: "Table", text: "Text", file: "File", json: "JSON" };
const MOST_TABLE_ROWS = 100;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const WORDS = /^[-+]?(nan|inf(inity)?)$/i;

export class InputError extends Error {}

// True for an input of one value: of many of them, each takes a line.
export function isSingleValue({ type, shape }) {
  const layout = tableLayout(type, shape);
  return layout !== null && layout.rows * layout.columns === 1;
}

// An input with the choice of its editor. `options` has `onChange(isWhole)` and `onSubmit()`, and `isCompact` for one
// of many inputs: a single value without a choice.
export function inputField(info, options) {
  const isCompact = options.isCompact && isSingleValue(info);
  const forms = isCompact ? ["table"] : formsOf(info);
  const place = element("div", { class: "editor" });
  const fault = element("p", { class: "fault", role: "alert" });
  let editor = null;
  let form = forms[0];

  function show(chosen) {
    form = chosen;
    editor = makeEditor[form](info, { ...options, title: info.name, onChange: (isWhole) => {
      fault.textContent = "";
      options.onChange(isWhole);
    } });
    place.replaceChildren(editor.node);
    fault.textContent = "";
  }

  show(form);
  const node = element("section", { class: `input ${isCompact ? "compact" : ""}`, "aria-label": `Input ${info.name}` },
    element("header", { class: "input-head" },
      element("h4", {}, info.name, " ", element("span", { class: "faint" }, `${info.type} ${shapeText(info.shape)}`)),
      forms.length > 1 ? choiceRow(`Way to fill ${info.name} in`, forms.map((one) => [one, TITLES[one]]), form, show)
        : null),
    place, fault);
  return {
    node,
    jsonText() {
      fault.textContent = "";
      try {
        if (editor.isEmpty?.()) throw new InputError(editor.emptyText);
        return editor.jsonText();
      } catch (error) {
        fault.textContent = error.message;
        throw error;
      }
    },
    isEmpty: () => editor.isEmpty?.() ?? false,
    isRunByStroke: () => editor.isRunByStroke === true,
    rowNames: () => editor.rowNames?.() ?? [],
    focus: () => editor.focus(),
  };
}

const makeEditor = {
  drawing: (info, options) => drawingEditor(info, pictureLayout(info.type, info.shape), options),
  picture: (info, options) => pictureEditor(info, pictureLayout(info.type, info.shape), options),
  table: tableEditor,
  text: textEditor,
  file: fileEditor,
  json: jsonEditor,
};

function submitsByKey(onSubmit) {
  return (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onSubmit();
    }
  };
}

export function jsonEditor(info, { onChange, onSubmit, title }) {
  const area = element("textarea", { class: "code", rows: 6, spellcheck: "false", "aria-label": `${title}: JSON`,
    input: () => onChange(false), keydown: submitsByKey(onSubmit) });
  area.value = info.example ?? JSON.stringify(exampleValue(info));
  return {
    node: area,
    focus: () => area.focus(),
    jsonText() {
      try {
        checkJson(area.value);
      } catch (error) {
        throw new InputError(`This is no JSON: ${error.message}`);
      }
      return area.value.trim();
    },
  };
}

function textEditor(info, { onChange, onSubmit, title }) {
  const isSingle = info.shape !== null && info.shape.length === 0;
  const hintId = newId("hint");
  const area = element("textarea", { rows: 4, "aria-label": `${title}: text`, "aria-describedby": hintId,
    placeholder: isSingle ? "A text" : "A text on each line", input: () => onChange(false),
    keydown: submitsByKey(onSubmit) });
  const lines = () => area.value.split("\n").filter((line, at, all) => line || at < all.length - 1);
  const depth = info.shape === null ? 1 : info.shape.length;
  const wrapped = (text) => {
    let value = text;
    for (let level = 1; level < depth; level += 1) value = [value];
    return value;
  };
  return {
    node: element("div", {}, area, element("p", { class: "faint hint", id: hintId },
      isSingle ? "The whole text is one value." : "Each line is a value. Ctrl+Enter runs.")),
    focus: () => area.focus(),
    isEmpty: () => !isSingle && area.value === "",
    emptyText: "Write a text first.",
    jsonText: () => JSON.stringify(isSingle ? area.value : lines().map(wrapped)),
    rowNames: () => (isSingle ? [] : lines()),
  };
}

// The bytes of files as strings: pictures that the model decodes itself, sounds, serialized messages.
function fileEditor(info, { onChange, title }) {
  const list = element("ul", { class: "files" });
  let files = [];
  const take = async () => {
    files = await Promise.all([...input.files].map(async (file) =>
      ({ name: file.name, base64: base64Text(new Uint8Array(await file.arrayBuffer())) })));
    list.replaceChildren(...files.map((file) => element("li", {}, file.name)));
    onChange(true);
  };
  const input = element("input", { type: "file", multiple: true, "aria-label": `${title}: files`, change: take });
  const isSingle = info.shape !== null && info.shape.length === 0;
  return {
    node: element("div", {}, input, list),
    focus: () => input.focus(),
    isEmpty: () => files.length === 0,
    emptyText: "Choose a file first.",
    isRunByStroke: true,
    jsonText() {
      const values = files.map(({ base64 }) => ({ b64: base64 }));
      const rank = info.shape?.length ?? 1;
      return JSON.stringify(isSingle ? values[0] : rank === 2 ? values.map((value) => [value]) : values);
    },
    rowNames: () => files.map((file) => file.name),
  };
}

function base64Text(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}

function tableEditor(info, { onChange, onSubmit, title, isCompact }) {
  const { rows, columns, grows } = tableLayout(info.type, info.shape);
  const growsHere = grows && !isCompact;
  const body = element("tbody");
  const isColumn = info.shape.length < 2;

  function addRow() {
    const number = body.rows.length + 1;
    const cells = Array.from({ length: columns }, (_, column) => element("td", {}, cell(number, column + 1)));
    body.append(element("tr", {}, growsHere ? element("th", { scope: "row" }, String(number)) : null, cells));
  }

  function cell(row, column) {
    const label = `${title}, row ${row}, column ${column}`;
    if (info.type === "bool") {
      return element("input", { type: "checkbox", "aria-label": label, change: () => onChange(true) });
    }
    return element("input", { type: "text", inputmode: "decimal", value: "0", size: 7, "aria-label": label,
      input: () => onChange(false), paste: pasteCells, keydown: (event) => {
        if (event.key === "Enter") {
          event.preventDefault();
          onSubmit();
        }
      } });
  }

  const inputs = () => [...body.rows].map((row) => [...row.querySelectorAll("input")]);

  // Cells of a spreadsheet fill the table from the cell of the paste.
  function pasteCells(event) {
    const lines = event.clipboardData.getData("text").trim().split(/\r?\n/)
      .map((line) => line.split(/\t|,\s*|;\s*|\s+/));
    if (lines.length === 1 && lines[0].length === 1) return;
    event.preventDefault();
    const first = inputs().findIndex((row) => row.includes(event.target));
    const column = inputs()[first].indexOf(event.target);
    while (growsHere && body.rows.length < Math.min(first + lines.length, MOST_TABLE_ROWS)) addRow();
    lines.forEach((words, row) => words.forEach((word, at) => {
      const target = inputs()[first + row]?.[column + at];
      if (target && info.type !== "bool") target.value = word;
    }));
    onChange(true);
  }

  for (let row = 0; row < rows; row += 1) addRow();
  const removal = element("button", { type: "button", class: "small", disabled: true, click: () => {
    body.rows[body.rows.length - 1].remove();
    removal.disabled = body.rows.length === 1;
    onChange(true);
  } }, "Remove row");
  const buttons = growsHere ? element("div", { class: "row" },
    element("button", { type: "button", class: "small", click: () => {
      if (body.rows.length < MOST_TABLE_ROWS) addRow();
      removal.disabled = false;
      onChange(true);
    } }, "Add row"), removal) : null;
  return {
    node: element("div", {}, element("div", { class: "scroll" }, element("table", { class: "cells" }, body)), buttons),
    focus: () => body.querySelector("input").focus(),
    jsonText() {
      const texts = inputs().map((row) => row.map((input) => cellText(info.type, input)));
      const lists = texts.map((row) => (isColumn && grows ? row[0] : `[${row.join(",")}]`));
      if (info.shape.length === 0) return texts[0][0];
      return isColumn && !grows ? lists[0] : `[${lists.join(",")}]`;
    },
  };
}

// The text of a number as JSON, without a loss of digits.
function cellText(type, input) {
  if (type === "bool") return String(input.checked);
  const text = input.value.trim();
  const isNumber = text !== "" && (WORDS.test(text) || !Number.isNaN(Number(text)));
  const isValid = isInteger(type) ? /^[-+]?\d+$/.test(text) : isNumber;
  input.setAttribute("aria-invalid", String(!isValid));
  if (!isValid) {
    input.focus();
    throw new InputError(`'${text}' is no ${isInteger(type) ? "whole number" : "number"}.`);
  }
  if (isInteger(type)) return String(BigInt(text.replace("+", "")));
  const word = WORDS.exec(text);
  if (word) return `${text.startsWith("-") ? "-" : ""}${/nan/i.test(text) ? "NaN" : "Infinity"}`.replace("-NaN", "NaN");
  return JSON_NUMBER.test(text) ? text : String(Number(text));
}
