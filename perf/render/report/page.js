// Sorts tables, and filters those below a form. The filter is kept in the address: #op=gemm&verdict=behind.
"use strict";

const tables = [...document.querySelectorAll("table.sortable")];

function sort(heading) {
  const column = heading.cellIndex;
  const body = heading.closest("table").tBodies[0];
  const up = heading.ariaSort !== "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = up ? "ascending" : "descending";
  const value = (row) => row.cells[column].textContent;
  const number = (row) => Number.parseFloat(value(row));
  const textual = [...body.rows].some((row) => /^[a-z]/i.test(value(row)));
  const missing = (row) => !textual && Number.isNaN(number(row)); // those come last either way
  const compare = (a, b) => (textual ? value(a).localeCompare(value(b)) : number(a) - number(b));
  const rows = [...body.rows].sort((a, b) => missing(a) - missing(b) || (up ? 1 : -1) * (compare(a, b) || 0));
  body.append(...rows);
}

function filter(form) {
  const wanted = Object.fromEntries(new FormData(form));
  const words = wanted.q.toLowerCase().split(/\s+/);
  for (const table of form.closest("section").querySelectorAll("table.sortable")) {
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      const fits = ["op", "package", "verdict"].every((name) => !wanted[name] || row.dataset[name] === wanted[name]);
      row.hidden = !(fits && words.every((word) => text.includes(word)));
      shown += !row.hidden;
    }
    table.closest("section").querySelector("output").value = shown;
  }
}

// An address with "=" is a filter; any other names an element, which a filter must not hide, and whose details are opened.
function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const target = document.getElementById(hash);
  if (hash.includes("=") && !target) {
    const wanted = new URLSearchParams(hash);
    for (const form of document.forms) {
      for (const field of form.querySelectorAll("[name]")) field.value = wanted.get(field.name) ?? "";
      filter(form);
    }
    if (wanted.has("sort")) for (const table of document.querySelectorAll("table.results")) sort(table.tHead.rows[0].cells[wanted.get("sort")]);
  } else if (target?.localName === "details") {
    target.open = true;
    target.scrollIntoView();
  } else if (target?.hidden) {
    target.closest("main").querySelector("form").reset();
    target.scrollIntoView();
  }
}

for (const table of tables) table.tHead.addEventListener("click", (event) => event.target.matches("button") && sort(event.target.parentNode));
for (const form of document.forms) {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const used = [...new FormData(form)].filter(([, value]) => value);
    history.replaceState(null, "", `#${new URLSearchParams(used)}`);
    filter(form);
  });
  form.addEventListener("reset", () => setTimeout(() => filter(form)));
}
addEventListener("hashchange", follow);
follow();
