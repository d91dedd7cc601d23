// Charts of cases with few elements: all dots of a package in a row are one path. Places on an axis are percents, so that a
// chart is as wide as the reader's screen, and its labels are text of the page.
"use strict";

const SIZE = 1000; // units of an SVG, across and up: it is stretched to its place, the dots are not
const plain = (x) => String(Number(x.toPrecision(3)));
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

class Axis {
  // Logarithmic, with a tick at 1, 2 and 5 of each decade, or at each decade where there are many.
  // What lies beyond its ends is drawn at them: at most `beyond` of the values on either side.
  constructor(values, beyond = 0) {
    const sorted = Float64Array.from(values).sort();
    const out = Math.floor(beyond * sorted.length);
    this.low = sorted[out] / 1.1;
    this.high = sorted[sorted.length - 1 - out] * 1.1;
    const decades = Math.log10(this.high / this.low);
    this.ticks = [];
    for (let power = Math.floor(Math.log10(this.low)); power <= Math.log10(this.high); power++) {
      for (const digit of decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5]) this.ticks.push(digit * 10 ** power);
    }
    this.ticks = this.ticks.filter((x) => x >= this.low && x <= this.high);
  }

  // In percent.
  at = (x) => Math.min(100, Math.max(0, (100 * Math.log(x / this.low)) / Math.log(this.high / this.low)));

  place = (x) => Math.round((this.at(x) * SIZE) / 100);

  labels = (side) => this.ticks.map((x) => `<span style="${side}:${this.at(x).toFixed(2)}%">${plain(x)}</span>`).join("");

  lines = (line) => this.ticks.map((x) => line(this.place(x))).join("");
}

const svg = (paths) => `<svg viewBox="0 0 ${SIZE} ${SIZE}" preserveAspectRatio="none" aria-hidden="true">${paths}</svg>`;
const path = (name, d) => (d ? `<path class="${name}" d="${d}"/>` : "");
const across = (y) => `M0 ${y}H${SIZE}`;
const up = (x) => `M${x} 0V${SIZE}`;

// Each once: dots of the same place are one.
const dots = (name, points) => path(`dots ${name}`, [...new Set(points.map(([x, y]) => `M${x} ${y}h0`))].join(""));

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

// A row a group: a dot a case, Triton above CUDA, ticks at their medians, lines at torch's speed and at the goal.
// rows: [{name, goal, dots: [[ratio, package, what it is of]]}]. Returns for each row its dots' places, to point at.
function strips(box, rows, packages, axis) {
  const shift = (i, n) => SIZE * ((i + 0.5) / packages.length + (((n * 7) % 9) - 4) / 9 / packages.length / 2);
  const places = rows.map((row) => row.dots.map(([x, i, of], n) => [axis.place(x), Math.round(shift(i, n)), of, i]));
  const html = rows.map((row, k) => {
    const of = packages.map((_, i) => row.dots.filter((dot) => dot[1] === i).map((dot) => dot[0]));
    const tick = (x, i) => `M${axis.place(x)} ${(SIZE * i) / packages.length}v${SIZE / packages.length}`;
    const drawn = packages.map((name, i) => {
      const middle = of[i].length ? path(`median ${name.toLowerCase()}`, tick(median(of[i]), i)) : "";
      return dots(name.toLowerCase(), places[k].filter((place) => place[3] === i)) + middle;
    });
    const goal = row.goal ? path("goal", up(axis.place(row.goal))) : "";
    const behind = of.map((ratios) => (ratios.length ? ratios.filter((x) => x < 1).length : "\u2013")).join(" / ");
    return `<div class="strip" data-row="${k}"><button type="button">${escaped(row.name)}</button>
${svg(path("grid", axis.lines(up)) + path("one", up(axis.place(1))) + goal + drawn.join(""))}
<span>${behind} of ${Math.max(...of.map((ratios) => ratios.length))}</span></div>`;
  });
  const head = `<div class="strip head"><span></span><div class="ticks">${axis.labels("left")}</div><span>behind: ${packages.join(" / ")}</span></div>`;
  box.innerHTML = head + html.join("");
  return places;
}

// Dots below min(peak, FLOP per byte * bandwidth). points: [[FLOP per byte, TFLOP/s, package, what it is of]]
function roofline(box, points, packages, roofs, x, y) {
  const place = (a, b) => [x.place(a), SIZE - y.place(b)];
  const places = points.map(([a, b, i, of]) => [...place(a, b), of, i]);
  const roof = (peak) => {
    const ridge = Math.min(Math.max(peak / roofs.bandwidth, x.low), x.high);
    return [x.low, ridge, x.high].map((a, n) => `${n ? "L" : "M"}${place(a, Math.min(peak, a * roofs.bandwidth))}`).join("");
  };
  const drawn = packages.map((name, i) => dots(name.toLowerCase(), places.filter((at) => at[3] === i)));
  let under = 100;
  const names = roofs.peaks.map(([name, peak]) => {
    under = Math.min(y.at(peak), under - 4.5); // the height of a line of text
    return `<span style="bottom:${under.toFixed(2)}%">${escaped(name)}: ${plain(peak)}</span>`;
  });
  box.innerHTML = `<div class="ticks up">${y.labels("bottom")}</div>
${svg(path("grid", x.lines(up) + y.lines((at) => across(SIZE - at))) + path("roof", roofs.peaks.map(([, peak]) => roof(peak)).join("")) + drawn.join(""))}
<div class="names">${names.join("")}</div><div class="ticks">${x.labels("left")}</div>`;
  return places;
}

// The nearest of the places to the pointer in an SVG, within a few pixels; null if none is.
function nearest(drawing, places, event, within = 12) {
  const box = drawing.getBoundingClientRect();
  let best = null;
  for (const [x, y, of] of places) {
    const far = Math.hypot(box.left + (x / SIZE) * box.width - event.clientX, box.top + (y / SIZE) * box.height - event.clientY);
    if (far < within) [within, best] = [far, of];
  }
  return best;
}
