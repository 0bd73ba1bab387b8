/* The table of features: sort, search, pages, CSV. */

const FIELDS = [
  { key: "name", title: "feature", text: true },
  { key: "rank", title: "rank", show: thousands, csv: "rank" },
  { key: "difference", title: DATA.difference, show: shown, csv: DATA.difference.replaceAll(" ", "_") },
  { key: "t", title: "t", show: shown, csv: "t" },
  { key: "p", title: "p", show: shownRate, csv: "p_value", rate: true },
  { key: "q", title: "q", show: shownRate, csv: "q_value", rate: true },
  { key: "z", title: "z", show: shown, csv: "z" },
  { key: "effect", title: "effect", show: shown, csv: "posterior_mean" },
  { key: "zero", title: "P(zero)", show: shownShare, csv: "prob_zero" },
  { key: "beyond", title: "q beyond", show: shownRate, csv: "q_beyond_factors", rate: true },
  { key: "weight", title: "weight", show: shown, csv: "coef" },
];
/* What a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

function csvText(text) {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csvNumber = (value, digits) => String(Number(value.toPrecision(digits)));

class Table {
  constructor(node) {
    this.node = node;
    this.sort = { key: "rank", down: false };
    this.page = 0;
    this.size = 25;
    this.query = "";
    this.rows = [];
    this.lower = null;
    this.head();
  }

  head() {
    const cells = FIELDS.map(({ key, title }) => {
      const button = make("button", { type: "button" }, title);
      button.addEventListener("click", () => this.sortBy(key));
      return make("th", { scope: "col", "data-key": key }, button);
    });
    this.node.tHead.rows[0].replaceChildren(...cells);
  }

  /* A second click reverses the order; rates and ranks start with the smallest. */
  sortBy(key) {
    const ascending = ["name", "rank", "p", "q", "zero", "beyond"].includes(key);
    this.sort = { key, down: this.sort.key === key ? !this.sort.down : !ascending };
    this.update();
  }

  search(query) {
    this.query = query.trim().toLowerCase();
    this.update();
    const said = document.getElementById("matches");
    if (!this.query) { state.found = null; said.textContent = ""; } else {
      state.found = this.rows;
      said.textContent = this.rows.length
        ? `${thousands(this.rows.length)} of ${thousands(current.n)} features match; marked in the plots.`
        : `No feature matches “${cut(query.trim(), 60)}”.`;
    }
    for (const plot of plots) plot.mark(state);
  }

  update() {
    const { key, down } = this.sort;
    let rows = Array.from(current.order);
    if (this.query) {
      this.lower = this.lower || rows.map((_, i) => nameOf(i).toLowerCase());
      rows = rows.filter((i) => this.lower[i].includes(this.query));
    }
    /* Rates are stored as -log10, so their order is reversed. */
    const turn = (down ? -1 : 1) * (["p", "q", "beyond"].includes(key) ? -1 : 1);
    if (key === "name") {
      const collator = new Intl.Collator("en", { numeric: true });
      rows.sort((a, b) => turn * collator.compare(nameOf(a), nameOf(b)));
    } else {
      const values = current[key];
      rows.sort((a, b) => turn * (values[a] - values[b]) || current.rank[a] - current.rank[b]);
    }
    this.rows = rows;
    this.page = 0;
    this.draw();
  }

  get pages() { return Math.max(1, Math.ceil(this.rows.length / this.size)); }

  turnTo(page) {
    this.page = Math.min(Math.max(page, 0), this.pages - 1);
    this.draw();
  }

  /* Turn to the page with a feature; a search that hides it is given up. */
  reveal(i) {
    let at = this.rows.indexOf(i);
    if (at < 0) {
      document.getElementById("search").value = "";
      this.search("");
      at = this.rows.indexOf(i);
    }
    this.turnTo(Math.floor(at / this.size));
  }

  draw() {
    const start = this.page * this.size;
    const part = this.rows.slice(start, start + this.size);
    this.node.tBodies[0].replaceChildren(...part.map((i) => this.row(i)));
    for (const th of this.node.tHead.rows[0].cells) {
      const sorted = th.dataset.key === this.sort.key;
      if (sorted) th.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    const end = start + part.length;
    document.getElementById("place").textContent = part.length
      ? `${thousands(start + 1)}–${thousands(end)} of ${thousands(this.rows.length)}` : "no rows";
    /* On paper there are no buttons, and the caption says which rows these are. */
    document.getElementById("table-caption").textContent = part.length
      ? `Features by ${this.sort.key === "rank" ? "evidence" : FIELDS.find((f) => f.key === this.sort.key).title}: rows ${document.getElementById("place").textContent}` : "No features";
    for (const id of ["first", "previous"]) document.getElementById(id).disabled = this.page === 0;
    for (const id of ["next", "last"]) document.getElementById(id).disabled = this.page >= this.pages - 1;
  }

  row(i) {
    const button = make("button", { type: "button", "aria-pressed": String(i === state.selected) }, make("bdi", {}, nameOf(i)));
    button.addEventListener("click", () => {
      select(i);
      /* The rows were replaced: restore the focus. */
      this.node.querySelector('tr[aria-current="true"] button')?.focus({ preventScroll: true });
    });
    const cells = FIELDS.slice(1).map(({ key, show }) => make("td", {}, show(current[key][i])));
    const row = make("tr", {}, make("th", { scope: "row" }, button), ...cells);
    if (i === state.selected) row.setAttribute("aria-current", "true");
    return row;
  }

  /* The rows of the table, all pages, in its order. */
  csv() {
    const many = DATA.contrasts.length > 1;
    const numbers = FIELDS.filter((field) => !field.text);
    const head = ["feature", "column", ...(many ? ["contrast"] : []), ...numbers.map((f) => f.csv), ...DATA.classes.map((c) => `mean of ${c}`)];
    const lines = [head.map(csvText).join(",")];
    for (const i of this.rows) {
      const cells = numbers.map(({ key, rate }) => (rate
        ? csvNumber(current[key][i] >= MOST ? 0 : 10 ** -current[key][i], 5)
        : csvNumber(current[key][i], 7)));
      const means = MEANS.map((mean) => csvNumber(mean[i], 7));
      const contrast = many ? [csvText(DATA.contrasts[state.contrast])] : [];
      lines.push([csvText(nameOf(i)), COLUMN[i], ...contrast, ...cells, ...means].join(","));
    }
    return `${lines.join("\r\n")}\r\n`;
  }
}
