"use strict";
/* The features, from the JSON in the page: names, and typed arrays in base64. */

const DATA = JSON.parse(document.getElementById("data").textContent);

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Kind(bytes.buffer);
}

/* One contrast: its columns, and the features by evidence for it alone. */
function contrastOf(k) {
  const rows = {};
  for (const key of Object.keys(DATA.rows)) rows[key] = unpack(DATA.rows[key][k], Float32Array);
  const n = rows.z.length;
  const order = DATA.order ? unpack(DATA.order[k], Uint32Array) : Uint32Array.from({ length: n }, (_, i) => i);
  const rank = new Float32Array(n);
  order.forEach((feature, place) => { rank[feature] = place + 1; });
  return { ...rows, order, rank, n };
}

const COLUMN = unpack(DATA.column, Uint32Array);
const MEANS = DATA.means.map((text) => unpack(text, Float32Array));
const CURVES = Object.fromEntries(Object.entries(DATA.curves).map(([k, text]) => [k, unpack(text, Float32Array)]));
const SHRINKAGES = Object.keys(CURVES).filter((name) => name !== "grid");
/* Rates are stored as -log10; this is 5 %. */
const LEVEL = -Math.log10(0.05);
const MOST = 300;

const nameOf = (i) => (DATA.names ? DATA.names[i] : `x${COLUMN[i]}`);
const minus = (text) => text.replace("-", "−");
const thousands = (n) => n.toLocaleString("en-US");

/* A number as it is shown: three digits, and no more zeros than are readable. */
function shown(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e5 || size < 1e-3) return minus(value.toExponential(1));
  return minus(size < 1 ? value.toPrecision(3) : value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size)))));
}

const shownShare = (share) => (share === 0 ? "0" : minus(share < 1e-3 ? share.toExponential(1) : share.toPrecision(2)));
const shownRate = (minusLog) => (minusLog >= MOST ? "<1e−300" : shownShare(10 ** -minusLog));

/* Elements: text is always set as text, never as markup. */
function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "path", "line", "text", "circle", "g"].includes(tag);
  const node = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

const cut = (text, letters) => {
  const points = Array.from(text);
  return points.length <= letters ? text : points.slice(0, letters - 1).join("") + "…";
};
