"use strict";
// Tables that sort by a click on a column, a filter above each, and a switch between light and dark.
(function () {
  function key(row, column) {
    const cell = row.cells[column];
    const raw = cell.dataset.value;
    const number = raw === undefined ? NaN : Number(raw);
    return Number.isNaN(number) ? cell.textContent.trim().toLowerCase() : number;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, undefined, { numeric: true });
  }
  function sort(table, column) {
    const heads = table.tHead.rows[0].cells;
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => (up ? 1 : -1) * compare(key(a, column), key(b, column)));
    table.tBodies[0].append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      head.tabIndex = 0;
      head.addEventListener("click", () => sort(table, column));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(table, column); }
      });
    });
    const tools = table.closest("section").querySelector("input[type=search]");
    const count = table.closest("section").querySelector(".count");
    if (!tools) continue;
    tools.addEventListener("input", () => {
      const wanted = tools.value.trim().toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      if (count) count.textContent = shown + " of " + table.tBodies[0].rows.length + " rows";
    });
  }
  const toggle = document.getElementById("theme");
  if (toggle) toggle.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  for (const each of document.querySelectorAll("button[data-tree]")) {
    each.addEventListener("click", () => {
      const open = each.dataset.tree === "open";
      for (const node of document.querySelectorAll("details.tree")) node.open = open;
    });
  }
})();
