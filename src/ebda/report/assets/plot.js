/* A scatter plot of the features: axes, dots, curves below, and marks on top. */

const MARGIN = { left: 50, right: 14, top: 12, bottom: 44 };
const NEAR = 16;
/* Width and height of a plot on paper: half of A4 without its margins. */
const PAPER = [320, 300];

function roundTicks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9); t * step <= high + step * 1e-9; t += 1) ticks.push(t * step);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return ticks.map((t) => [t, minus(Math.abs(t) < step * 1e-6 ? "0" : digits > 5 || step >= 1e5 ? t.toExponential(0) : t.toFixed(digits))]);
}

function extent(values, pad) {
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  const room = (high - low) * pad || 0.5;
  return [low - room, high + room];
}

class Plot {
  /* host: an empty element; events: hover(i), choose(i), step(by), leave(). */
  constructor(host, events) {
    this.host = host;
    this.events = events;
    this.base = make("svg", { "aria-hidden": "true" });
    this.over = make("svg", { class: "over", "aria-hidden": "true" });
    this.tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
    host.append(this.base, this.over, this.tip);
    host.tabIndex = 0;
    host.setAttribute("role", "application");
    host.setAttribute("aria-roledescription", "interactive plot");
    this.view = null;
    this.marks = { hovered: -1, selected: -1, found: null };
    host.addEventListener("pointermove", (e) => this.events.hover(this.nearest(e)));
    host.addEventListener("pointerleave", () => this.events.leave());
    host.addEventListener("click", (e) => this.events.choose(this.nearest(e)));
    host.addEventListener("blur", () => this.events.leave());
    host.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.draw()).observe(host);
    /* Paper is narrower than most screens: text is drawn at the size it will have. */
    addEventListener("beforeprint", () => this.draw(...PAPER));
    addEventListener("afterprint", () => this.draw());
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.events.step(steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.events.choose(this.marks.hovered);
    else if (event.key === "Escape") this.events.leave();
    else return;
    event.preventDefault();
  }

  show(view) {
    this.view = view;
    this.host.setAttribute("aria-label", view.label);
    this.draw();
  }

  px(v) { const { x } = this.view; return MARGIN.left + ((v - x[0]) / (x[1] - x[0])) * (this.width - MARGIN.left - MARGIN.right); }

  py(v) { const { y } = this.view; return this.height - MARGIN.bottom - ((v - y[0]) / (y[1] - y[0])) * (this.height - MARGIN.top - MARGIN.bottom); }

  draw(width = this.host.clientWidth, height = this.host.clientHeight) {
    this.width = width;
    this.height = height;
    if (!this.view || !this.width) return;
    const { view } = this;
    for (const svg of [this.base, this.over]) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [];
    const bottom = height - MARGIN.bottom;
    for (const [t, words] of roundTicks(...view.x, width / 85)) {
      parts.push(make("line", { class: "grid", x1: this.px(t), x2: this.px(t), y1: MARGIN.top, y2: bottom }));
      parts.push(make("text", { x: this.px(t), y: bottom + 17, "text-anchor": "middle" }, words));
    }
    const [low, high] = [Math.min(...view.y), Math.max(...view.y)];
    for (const [t, words] of roundTicks(low, high, 6)) {
      parts.push(make("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: this.py(t), y2: this.py(t) }));
      parts.push(make("text", { x: MARGIN.left - 7, y: this.py(t) + 4, "text-anchor": "end" }, words));
    }
    const middle = (MARGIN.left + width - MARGIN.right) / 2;
    parts.push(make("text", { class: "axis-title", x: middle, y: height - 8, "text-anchor": "middle" }, cut(view.across, Math.floor(width / 7.5))));
    const up = (MARGIN.top + bottom) / 2;
    parts.push(make("text", { class: "axis-title", "text-anchor": "middle", transform: `translate(13 ${up}) rotate(-90)` }, view.up));
    if (view.line !== undefined) {
      const at = this.py(view.line);
      parts.push(make("line", { class: "level-line", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }));
      parts.push(make("text", { x: width - MARGIN.right - 2, y: at - 5, "text-anchor": "end" }, view.lineName));
    }
    this.base.replaceChildren(...parts, ...view.curves.map((c) => this.curve(c)), ...this.dots(), ...this.names());
    this.mark(this.marks);
  }

  /* One path for each colour; dots on the same half pixel are drawn once. */
  dots() {
    const paths = { null: [], down: [], up: [] };
    const taken = new Set();
    const { xs, ys, group } = this.view;
    for (let i = 0; i < xs.length; i += 1) {
      const x = Math.round(this.px(xs[i]) * 2) / 2, y = Math.round(this.py(ys[i]) * 2) / 2;
      const key = (x * 1e5 + y) * 3 + group[i];
      if (taken.has(key)) continue;
      taken.add(key);
      paths[["null", "down", "up"][group[i]]].push(`M${x} ${y}h.01`);
    }
    const colours = { null: "", ...this.view.sides };
    return Object.entries(paths).map(([kind, d]) => make("path", { class: `dots ${kind} ${colours[kind]}`, d: d.join("") }));
  }

  curve({ kind, xs, ys }) {
    const points = [];
    let pen = "M";
    for (let i = 0; i < xs.length; i += 1) {
      const inside = ys[i] >= this.view.y[0] && ys[i] <= this.view.y[1] && xs[i] >= this.view.x[0] && xs[i] <= this.view.x[1];
      if (!inside) { pen = "M"; continue; }
      points.push(`${pen}${this.px(xs[i]).toFixed(1)} ${this.py(ys[i]).toFixed(1)}`);
      pen = "L";
    }
    return make("path", { class: `curve ${kind}`, d: points.join("") });
  }

  /* Names of the first features, where they cover no other name. */
  names() {
    const boxes = [], written = [];
    const { xs, ys, group } = this.view;
    const dots = [];
    xs.forEach((_, j) => { if (group[j]) dots.push([this.px(xs[j]), this.py(ys[j])]); });
    const room = this.width < 420 ? 4 : 8;
    for (const i of this.view.named.slice(0, room)) {
      const name = cut(nameOf(i), 16);
      const [x, y, wide] = [this.px(xs[i]), this.py(ys[i]), 7.2 * Array.from(name).length];
      const spots = [[x + 6, y + 4, "start"], [x - 6 - wide, y + 4, "end"], [x - wide / 2, y - 8, "middle"]];
      const spot = spots.find(([l, b]) => l > MARGIN.left && l + wide < this.width - 4 && b > 12
        && !dots.some(([dx, dy]) => dx > l - 2 && dx < l + wide + 2 && dy > b - 13 && dy < b + 5 && (dx !== x || dy !== y))
        && !boxes.some(([bl, bb, bw]) => l < bl + bw && bl < l + wide && Math.abs(b - bb) < 13));
      if (!spot) continue;
      const [left, base, anchor] = spot;
      boxes.push([left, base, wide]);
      const at = { start: left, middle: left + wide / 2, end: left + wide }[anchor];
      written.push(make("text", { class: "name", x: at, y: base, "text-anchor": anchor }, name));
    }
    return written;
  }

  mark(marks) {
    this.marks = marks;
    if (!this.view || !this.width) return;
    const { xs, ys } = this.view;
    const parts = [];
    this.host.classList.toggle("searching", marks.found !== null);
    this.host.classList.toggle("chosen", marks.selected >= 0);
    if (marks.found) {
      const d = Array.from(marks.found, (i) => `M${this.px(xs[i]).toFixed(1)} ${this.py(ys[i]).toFixed(1)}h.01`);
      parts.push(make("path", { class: "found", d: d.join("") }));
    }
    for (const [i, kind] of [[marks.selected, "selected"], [marks.hovered, "hover"]]) {
      if (i < 0) continue;
      parts.push(make("circle", { class: `ring ${kind}`, cx: this.px(xs[i]), cy: this.py(ys[i]), r: kind === "hover" ? 6 : 8 }));
    }
    if (marks.selected >= 0) {
      const x = this.px(xs[marks.selected]), right = x < this.width / 2;
      const at = { class: "name chosen", x: right ? x + 12 : x - 12, y: this.py(ys[marks.selected]) + 4, "text-anchor": right ? "start" : "end" };
      parts.push(make("text", at, cut(nameOf(marks.selected), 22)));
    }
    this.over.replaceChildren(...parts);
  }

  nearest(event) {
    if (!this.view) return -1;
    const box = this.host.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const reach = event.pointerType === "touch" ? NEAR * 1.6 : NEAR;
    let best = -1, least = reach * reach;
    const { xs, ys } = this.view;
    for (let i = 0; i < xs.length; i += 1) {
      const dx = this.px(xs[i]) - x, dy = this.py(ys[i]) - y;
      const distance = dx * dx + dy * dy;
      if (distance < least) { best = i; least = distance; }
    }
    return best;
  }

  say(i, pairs) {
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const list = make("dl");
    for (const [what, value] of pairs) list.append(make("dt", {}, what), make("dd", {}, value));
    this.tip.replaceChildren(make("b", {}, cut(nameOf(i), 120)), list);
    const x = this.px(this.view.xs[i]), y = this.py(this.view.ys[i]);
    const left = x + 14 + this.tip.offsetWidth > this.width ? x - 14 - this.tip.offsetWidth : x + 14;
    const top = Math.min(Math.max(y - this.tip.offsetHeight / 2, 0), this.height - this.tip.offsetHeight);
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
  }
}
