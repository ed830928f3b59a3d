"use strict";
// Tables sort by a click on a heading, or by Enter or Space on it.
const number = (text) => {
  const found = text.replace(/\u2212/g, "-").match(/^\s*(-?\d+(\.\d+)?(e[+-]?\d+)?)/i);
  return found ? Number(found[1]) : NaN;
};
const keyOf = (row, column) => {
  const cell = row.cells[column];
  return cell === undefined ? "" : cell.dataset.sort || cell.textContent.trim();
};
const compare = (one, other) => {
  const numbers = [number(one), number(other)];
  if (numbers.every((value) => !Number.isNaN(value))) return numbers[0] - numbers[1];
  if (numbers.some((value) => !Number.isNaN(value))) return Number.isNaN(numbers[0]) ? 1 : -1;
  return one.localeCompare(other, "en");
};
const sort = (table, heading, column) => {
  const rising = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const grouped = table.tBodies.length > 1;
  const items = grouped ? [...table.tBodies] : [...table.tBodies[0].rows];
  const row = (item) => (grouped ? item.rows[0] : item);
  items.sort((one, other) => (rising ? 1 : -1) * compare(keyOf(row(one), column), keyOf(row(other), column)));
  for (const item of items) item.parentNode.append(item);
};
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sorter";
    button.title = "Sort by this column";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, heading, column));
  });
}
// Pictures enlarge by a click, or by Enter on them.
const dialog = document.createElement("dialog");
dialog.className = "enlarged";
dialog.setAttribute("aria-label", "Enlarged picture");
document.body.append(dialog);
dialog.addEventListener("click", () => dialog.close());
for (const image of document.querySelectorAll("main img")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "zoom";
  button.title = "Enlarge";
  image.replaceWith(button);
  button.append(image);
  button.addEventListener("click", () => {
    const large = image.cloneNode();
    large.removeAttribute("width");
    large.removeAttribute("height");
    const words = document.createElement("p");
    words.textContent = image.alt;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    dialog.replaceChildren(large, words, close);
    dialog.showModal();
  });
}
// Paper has nothing to unfold.
const folded = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    if (details.closest(".verdicts")) continue;
    details.open = true;
    folded.push(details);
  }
});
addEventListener("afterprint", () => {
  while (folded.length) folded.pop().open = false;
});
