// The tables and charts of the page's data. A filter is kept in the address: #gpu=h200&package=CUDA&verdict=behind&sort=3.
const page = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector("form");
const tip = document.getElementById("tip");
const ROWS = 100; // of a table, put into the document at a time

const micro = (us) => (us >= 99.95 ? us.toFixed(0) : us >= 9.995 ? us.toFixed(1) : us.toFixed(2));
const small = (text) => (text ? `<small>${escaped(text)}</small>` : "");
const linked = (text, address) => (address ? `<a href="${escaped(address)}">${escaped(text)}</a>` : escaped(text));
const origin = (gpu, number) => linked(`${page.gpus[gpu]} ${number}`, `origins.html#${page.gpus[gpu]}/${number}`);
const colour = (ratio) => page.least.filter((least) => ratio >= least).length - 1;

class Table {
  // columns: [heading, row => HTML, row => what it is sorted by, class]; null sorts last, whether up or down.
  constructor(table, columns) {
    Object.assign(this, { table, columns, sorted: 0 });
    const cell = ([heading], i) => `<th scope="col"><button type="button" data-column="${i + 1}">${heading}</button></th>`;
    table.innerHTML = `<thead><tr>${columns.map(cell).join("")}</tr></thead><tbody></tbody>`;
    table.tHead.addEventListener("click", (event) => event.target.dataset.column && this.sort(Number(event.target.dataset.column)));
    const seen = (entries) => entries.some((entry) => entry.isIntersecting) && this.more();
    this.end = new IntersectionObserver(seen, { root: table.parentNode, rootMargin: "600px" });
  }

  // By the column of this number, from 1, downwards if it is negative; 0 is the order of the data.
  sort(column) {
    this.sorted = column === this.sorted ? -column : column;
    this.show(this.rows);
    this.table.dispatchEvent(new Event("sorted"));
  }

  show(rows) {
    this.rows = rows;
    this.order = rows;
    for (const heading of this.table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
    if (this.sorted) {
      const column = Math.abs(this.sorted) - 1;
      const sign = Math.sign(this.sorted);
      const keys = new Map(rows.map((row) => [row, this.columns[column][2](row)]));
      const missing = (key) => key === null || key === undefined;
      const compare = (a, b) => missing(a) - missing(b) || (missing(a) ? 0 : sign * (typeof a === "string" ? a.localeCompare(b) : a - b));
      this.order = [...rows].sort((a, b) => compare(keys.get(a), keys.get(b)));
      this.table.tHead.rows[0].cells[column].ariaSort = sign > 0 ? "ascending" : "descending";
    }
    this.table.tBodies[0].replaceChildren();
    this.table.parentNode.scrollTop = 0;
    this.more();
  }

  more() {
    const body = this.table.tBodies[0];
    this.end.disconnect();
    const cells = (row) => this.columns.map(([, html, , name]) => `<td${name ? ` class="${name(row)}"` : ""}>${html(row)}</td>`).join("");
    const next = this.order.slice(body.rows.length, body.rows.length + ROWS);
    body.insertAdjacentHTML("beforeend", next.map((row) => `<tr>${cells(row)}</tr>`).join(""));
    if (body.rows.length < this.order.length) this.end.observe(body.lastElementChild);
  }
}

const results = (page.results ?? []).map(([number, own, design, us, ratio, verdict, from, torch, low, high]) => {
  const [gpu, group, kind, name, intensity, tflop] = page.cases[number];
  const [title, twin] = page.designs[design];
  return { gpu, group, kind, name, intensity, tflop, package: own, design: title, twin, us, ratio, verdict, from, torch, low, high };
});

const columnsOfResults = [
  ["x", (r) => (r.ratio === null ? "&ndash;" : r.ratio.toFixed(2)), (r) => r.ratio, (r) => (r.ratio === null ? "none" : `x${colour(r.ratio)}`)],
  ["case", (r) => escaped(r.name) + small(page.groups[r.group] + (page.verdicts[r.verdict] === "even" ? ", even" : "")), (r) => r.name],
  ["design", (r) => linked(r.design, r.twin) + small(`${page.packages[r.package]}, ${page.kinds[r.kind]}`), (r) => r.design],
  ["&micro;s", (r) => micro(r.us) + small(r.high && `${micro(r.low)}\u2013${micro(r.high)}`), (r) => r.us],
  ["torch", (r) => (r.torch ? micro(r.torch) : "&ndash;"), (r) => r.torch],
  ["GFLOP", (r) => plain(1e3 * r.tflop), (r) => r.tflop],
  ["from", (r) => origin(r.gpu, r.from), (r) => r.gpu * 1e6 + r.from],
];

const mix = (shares) => `<span class="mix" title="${Object.entries(shares).map(([kind, share]) => `${share} % ${kind}`).join(", ")}">${Object.entries(shares)
  .map(([kind, share]) => `<i class="${kind}" style="width:${share}%"></i>`).join("")}</span>`;

const columnsOfCode = [
  ["design", (c) => linked(c.design, c.twin) + small(page.packages[c.package]), (c) => c.design],
  ["registers", (c) => c.registers, (c) => c.registers],
  ["stack", (c) => c.stack, (c) => c.stack],
  ["shared", (c) => `${(c.shared / 1024).toFixed(1)} KB`, (c) => c.shared],
  ["blocks/SM", (c) => c.blocks + small(c.occupancy), (c) => c.blocks],
  ["loop", (c) => c.loop, (c) => c.loop],
  ["math", (c) => `${c.math} %`, (c) => c.math],
  ["loop's mix", (c) => mix(c.mix), (c) => c.mix.math],
  ["LDS", (c) => c.lds || "&ndash;", (c) => c.lds],
  ["LDG", (c) => c.ldg || "&ndash;", (c) => c.ldg],
  ["predicted &micro;s", (c) => (c.us === null ? "&ndash;" : micro(c.us) + small(c.bound)), (c) => c.us],
  ["config", (c) => `<small>${escaped(c.config)}</small>`, (c) => c.config],
  ["from", (c) => origin(c.gpu, c.from), (c) => c.gpu * 1e6 + c.from],
];

const tables = Object.fromEntries(
  [["results", columnsOfResults], ["codes", columnsOfCode]].flatMap(([name, columns]) => {
    const table = document.getElementById(name);
    return table ? [[name, new Table(table, columns)]] : [];
  }),
);

// The words of a filter; what is in quotes is one.
const words = (text) => (text.toLowerCase().match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));

// Whether a row is of the chosen GPU, package, group and verdict; machine code is of no group and has no verdict.
function chosen(wanted) {
  const lists = { gpu: page.gpus, package: page.packages, group: page.groups, verdict: page.verdicts };
  const tests = Object.entries(lists).flatMap(([name, list]) => (wanted[name] ? [[name, list.indexOf(wanted[name])]] : []));
  return (row) => tests.every(([name, number]) => !(name in row) || row[name] === number);
}

function says(parts) {
  return (r) => {
    const text = `${r.name} ${page.groups[r.group]} ${r.design} ${page.kinds[r.kind]}`.toLowerCase();
    return parts.every((word) => text.includes(word));
  };
}

const speed = (r) => r.tflop / (r.us / 1e6);
const roofed = results.filter((r) => page.roofs?.[r.gpu]);
const peaks = (page.roofs ?? []).flatMap((own) => (own ? own.peaks.map(([, peak]) => [(2 * peak) / own.bandwidth, peak]) : []));
const ratios = new Axis([0.5, 2, ...results.filter((r) => r.ratio).map((r) => r.ratio)], 0.005);
const intensities = new Axis([...roofed.map((r) => r.intensity), ...peaks.map((peak) => peak[0])]);
const speeds = new Axis([...roofed.map(speed), ...peaks.map((peak) => peak[1])]);
const drawn = new Map(); // {SVG: the places of its dots}

function draw(shown) {
  drawn.clear();
  for (const box of document.querySelectorAll(".strips")) {
    const rows = page.groups.map((name, i) => ({ name, goal: page.goals?.[i], dots: [] }));
    for (const r of shown) if (r.ratio && r.gpu === Number(box.dataset.gpu)) rows[r.group].dots.push([r.ratio, r.package, r]);
    const places = strips(box, rows.filter((row) => row.dots.length), page.packages, ratios);
    box.querySelectorAll("svg").forEach((drawing, i) => drawn.set(drawing, places[i]));
  }
  for (const box of document.querySelectorAll(".roofline")) {
    const gpu = Number(box.dataset.gpu);
    const points = shown.filter((r) => r.gpu === gpu).map((r) => [r.intensity, speed(r), r.package, r]);
    const places = roofline(box, points, page.packages, page.roofs[gpu], intensities, speeds);
    drawn.set(box.querySelector("svg"), places);
  }
}

function filter() {
  const wanted = Object.fromEntries(new FormData(form));
  const shown = results.filter(chosen(wanted)).filter(says(words(wanted.q)));
  tables.results?.show(shown);
  tables.codes?.show(page.codes.filter(chosen(wanted)));
  const counts = page.verdicts.map((name, i) => [shown.filter((r) => r.verdict === i).length, name]).filter(([count]) => count);
  if (tables.results) document.getElementById("count").value = `${shown.length} of ${results.length} results: ${counts.map((pair) => pair.join(" ")).join(", ") || "none"}`;
  draw(shown);
}

function keep() {
  const used = [...new FormData(form)].filter(([, value]) => value);
  if (tables.results?.sorted) used.push(["sort", tables.results.sorted]);
  history.replaceState(null, "", used.length ? `#${new URLSearchParams(used)}` : location.pathname + location.search);
}

// An address with "=" is a filter; any other names an element.
function follow() {
  const wanted = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const field of form.querySelectorAll("[name]")) field.value = wanted.get(field.name) ?? "";
  if (tables.results) tables.results.sorted = Number(wanted.get("sort") ?? 0);
  filter();
}

function choose(name, value) {
  form.elements[name].value = value;
  filter();
  keep();
}

// What a dot is of, where the pointer is; null where none is near.
function pointed(event) {
  const drawing = event.target.closest?.("svg");
  return drawn.has(drawing) ? nearest(drawing, drawn.get(drawing), event) : null;
}

function point(event) {
  const r = pointed(event);
  tip.hidden = !r;
  if (!r) return;
  const against = r.ratio === null ? "no time of torch" : `${r.ratio.toFixed(2)} of torch's speed`;
  tip.textContent = `${r.name}\n${page.groups[r.group]}\n${page.packages[r.package]} ${r.design}: ${micro(r.us)} \u00b5s, ${against}`;
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 16}px`;
}

if (form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => (filter(), keep()));
  form.addEventListener("reset", () => setTimeout(() => (filter(), keep())));
  tables.results?.table.addEventListener("sorted", keep);
  addEventListener("hashchange", follow);
  document.addEventListener("pointermove", point);
  document.addEventListener("scroll", () => (tip.hidden = true), true);
  document.addEventListener("click", (event) => {
    const r = pointed(event);
    const group = event.target.closest(".strip button")?.textContent;
    if (r) choose("q", `"${r.name}"`);
    else if (group) choose("group", form.elements.group.value === group ? "" : group);
  });
  follow();
}
