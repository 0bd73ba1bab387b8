/* The two plots, and what they and the table share: hovered, selected, found. */

const apart = () => (DATA.classes.length === 2 ? `mean of ${DATA.classes[1]} minus mean of ${DATA.classes[0]}` : `mean of ${DATA.classes[state.contrast]} minus mean of all`);

const AXES = {
  difference: () => `${DATA.difference === "difference" ? "" : `${DATA.difference}: `}${apart()}`,
  effect: () => "effect (posterior mean, in standard errors)",
  p: () => "−log₁₀ p",
  zero: () => "probability of zero",
};

const state = { contrast: 0, hovered: -1, selected: -1, found: null, across: "difference", up: "p" };
let current = contrastOf(0);
let table = null;

/* Colours of the sides: a class has its own; all others together have none. */
const sideColours = () => (DATA.classes.length === 2 ? { up: "c1", down: "c0" } : { up: `c${state.contrast % DATA.colours}`, down: "others" });

const sideNames = () => (DATA.classes.length === 2 ? [DATA.classes[1], DATA.classes[0]] : [DATA.classes[state.contrast], "the others"]);

function groups() {
  const group = new Uint8Array(current.n);
  for (let i = 0; i < current.n; i += 1) if (current.q[i] >= LEVEL - 1e-6) group[i] = current.t[i] > 0 ? 2 : 1;
  return group;
}

const facts = (i) => [
  [DATA.difference, shown(current.difference[i])],
  ["t", shown(current.t[i])],
  ["p", shownRate(current.p[i])],
  ["q", shownRate(current.q[i])],
  ["z", shown(current.z[i])],
  ["effect", shown(current.effect[i])],
  ["P(zero)", shownShare(current.zero[i])],
  ["q beyond", shownRate(current.beyond[i])],
];

const spoken = (i) => `${nameOf(i)}, rank ${current.rank[i]}: ${facts(i).map((pair) => pair.join(" ")).join(", ")}`;

const plots = ["volcano", "shrinkage"].map((id) => {
  const plot = new Plot(document.getElementById(id), {
    hover: (i) => hover(i, plot),
    choose: (i) => { if (i >= 0) select(i); },
    leave: () => hover(-1, plot),
    step: (by) => {
      const rows = table.rows;
      if (!rows.length) return;
      const at = rows.indexOf(state.hovered);
      const next = at < 0 ? (by === Infinity ? rows.length - 1 : 0) : Math.min(Math.max(at + by, 0), rows.length - 1);
      hover(rows[next], plot);
      document.getElementById("live").textContent = spoken(rows[next]);
    },
  });
  return plot;
});
const [volcano, shrinkage] = plots;

function hover(i, plot) {
  if (i === state.hovered && !plot.tip.hidden === i >= 0) return;
  state.hovered = i;
  for (const other of plots) {
    other.mark(state);
    other.say(other === plot ? i : -1, i < 0 ? [] : facts(i));
  }
}

function select(i) {
  state.selected = i;
  for (const plot of plots) plot.mark(state);
  const detail = document.getElementById("detail");
  detail.hidden = i < 0;
  if (i < 0) return;
  const [above, below] = sideNames();
  const side = current.t[i] > 0 ? above : below;
  const means = MEANS.map((mean, k) => `${DATA.classes[k]} ${shown(mean[i])}`).join(", ");
  const rows = [["rank", thousands(current.rank[i])], ...facts(i), ["weight", shown(current.weight[i])]];
  detail.replaceChildren(
    make("h3", {}, make("bdi", {}, nameOf(i))),
    make("p", {}, current.t[i] === 0 ? "No difference." : `Higher in ${side}. Class means: ${means}.`),
    make("p", {}, rows.map((pair) => pair.join("\u00a0")).join(" · ")),
  );
  table.reveal(i);
  document.getElementById("live").textContent = `Selected ${spoken(i)}`;
}

function drawFigures() {
  const group = groups();
  /* Counted among all features, of which the page may hold a part. */
  const [higher, lower] = DATA.found[state.contrast];
  const sides = sideColours();
  const named = Array.from(current.order.slice(0, 12)).filter((i) => group[i] > 0);
  let line = Infinity;
  group.forEach((g, i) => { if (g) line = Math.min(line, current.p[i]); });
  const [above, below] = sideNames();
  const up = current[state.up];
  volcano.show({
    xs: current[state.across], ys: up, group, sides, named, curves: [],
    x: extent(current[state.across], 0.04),
    y: state.up === "zero" ? [1.03, -0.04] : [-0.02 * Math.max(...extent(up, 0)), Math.max(1.5, extent(up, 0.05)[1])],
    line: state.up === "p" && Number.isFinite(line) ? line : undefined,
    lineName: "q ≤ 0.05",
    across: AXES[state.across](), up: AXES[state.up](),
    label: `Volcano plot of ${thousands(current.n)} features, ${thousands(higher + lower)} of them with q at most 0.05. Arrow keys step through the features in the order of the table, Enter selects.`,
  });
  const caption = document.getElementById("volcano-caption");
  const side = (kind, n, words) => make("b", { class: `side ${sides[kind]}` }, `${thousands(n)} higher in ${cut(words, 60)}`);
  caption.replaceChildren(
    `${thousands(higher + lower)} of ${thousands(DATA.total)} features differ between ${DATA.classes.length === 2 ? "the classes" : `${cut(above, 60)} and all samples`} with q ≤ 0.05: `,
    side("up", higher, above), ", ", side("down", lower, below), ". Click a dot to find it in the table.",
  );
  shrinkage.show({
    xs: current.z, ys: current.effect, group, sides, named: [],
    x: [CURVES.grid[0], CURVES.grid[CURVES.grid.length - 1]],
    y: extent(Object.values(CURVES).flatMap((curve) => Array.from(curve)), 0.02),
    curves: SHRINKAGES.map((name, k) => ({ kind: `k${k}`, xs: CURVES.grid, ys: CURVES[name] })).reverse(),
    across: "observed difference z", up: "estimate",
    label: `Shrinkage plot: the estimate against z for ${thousands(current.n)} features, with curves for ${SHRINKAGES.join(", ")}. Arrow keys step through the features in the order of the table, Enter selects.`,
  });
}

SHRINKAGES.forEach((name, k) => {
  const stroke = make("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, make("path", { class: `curve k${k}`, d: "M0 4H26" }));
  document.getElementById("curves").append(make("span", {}, stroke, name));
});
