"use strict";
// Shows a compressed listing when it is opened: hundreds of listings have millions of elements.
// Every text goes in as text, never as markup.

const LONG = 32, VISIBLE = 8; // longer runs of one kind are folded, but for so many rows at either end
const KINDS = { "": "", "~": "changed", "+": "added", "\u2212": "removed" };

const element = (name, className, ...children) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
};

// The operands, those marked that differ from the other side's beyond the numbers of registers.
const operands = (text, other) => {
  const plain = (operand) => (operand || "").replace(/\b(U?[RP])\d+\b/g, "$1"), theirs = other.split(", ");
  return text.split(", ").flatMap((operand, at) => [at ? ", " : "", plain(operand) === plain(theirs[at]) ? operand : element("mark", "", operand)]);
};

function row([mark, before, after]) {
  const code = (side, other) => {
    if (!side) return [element("td", "address"), element("td")];
    const [label, address, text, kind] = side, parts = mark === "~" ? operands(text, other[2]) : [text];
    return [element("td", "address", address), element("td", kind, label ? element("div", "label", `${label}:`) : "", ...parts)];
  };
  return element("tr", KINDS[mark], ...code(before, after), element("td", "sign", mark), ...code(after, before));
}

function fold(table, rows, what) {
  const button = element("button", "", `${rows.length} more instructions, ${what}`), cell = element("td", "", button);
  cell.colSpan = 5;
  const folded = element("tbody", "", element("tr", "", cell));
  button.addEventListener("click", () => folded.replaceChildren(...rows.map(row)));
  table.append(folded);
}

async function show(details) {
  const place = details.querySelector("[data-packed]");
  if (!place) return;
  const bytes = Uint8Array.from(atob(place.dataset.packed), (letter) => letter.charCodeAt(0));
  delete place.dataset.packed;
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const rows = await new Response(inflated).json(), table = element("table", "sass");
  for (let at = 0, end = 0; at < rows.length; at = end) {
    while (end < rows.length && rows[end][0] === rows[at][0]) end++;
    const run = rows.slice(at, end), long = run.length > LONG && run[0][0] !== "~";
    table.append(element("tbody", "", ...run.slice(0, long ? VISIBLE : run.length).map(row)));
    if (!long) continue;
    fold(table, run.slice(VISIBLE, -VISIBLE), KINDS[run[0][0]] || "the same on both sides");
    table.append(element("tbody", "", ...run.slice(-VISIBLE).map(row)));
  }
  place.replaceChildren(table);
}

for (const details of document.querySelectorAll(".result")) {
  details.addEventListener("toggle", () => show(details));
  if (details.open) show(details);
}

// The address of a row opens its listing, and what it is folded in.
function go() {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let details = row; details; details = details.parentElement.closest("details")) details.open = true;
}
addEventListener("hashchange", go);
go();
