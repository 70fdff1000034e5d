// Elements from tags, attributes and children. A text becomes a text node, so no text of a model is ever markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// An attribute that is a function listens to the event of its name; false and null leave an attribute out.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

let lastNumber = 0;

export function newId(prefix) {
  lastNumber += 1;
  return `${prefix}-${lastNumber}`;
}

// A row of choices, of which one counts: radio buttons that look like one switch.
export function choiceRow(label, choices, chosen, onChange) {
  const name = newId("choice");
  return element("fieldset", { class: "choices" }, element("legend", { class: "hidden-text" }, label),
    ...choices.map(([value, text]) => {
      const input = element("input", { type: "radio", name, value, checked: value === chosen,
        change: () => onChange(value) });
      return element("label", {}, input, element("span", {}, text));
    }));
}

export function labelled(text, control, hint = "") {
  const id = control.id || newId("field");
  control.id = id;
  return element("div", { class: "field" }, element("label", { for: id }, text), control,
    hint ? element("span", { class: "faint" }, hint) : null);
}

export function selectOf(choices, chosen, onChange) {
  const select = element("select", { change: () => onChange(select.value) },
    ...choices.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return select;
}

export function copyButton(textOf, label = "Copy") {
  const button = element("button", { type: "button", class: "small", click: async () => {
    const isCopied = await copyText(textOf());
    button.textContent = isCopied ? "Copied" : "Not copied";
    announce(button.textContent);
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

// Browsers give pages without TLS no clipboard, so a selection copies there.
async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // denied: the selection below may still work
    }
  }
  const area = element("textarea", { class: "hidden-text", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
