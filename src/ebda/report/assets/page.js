/* Wiring: buttons, fields, theme. */

const byId = (id) => document.getElementById(id);

table = new Table(byId("table"));
table.update();
drawFigures();

byId("search").addEventListener("input", (event) => table.search(event.target.value));
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && table.rows.length) select(table.rows[0]);
  if (event.key === "Escape") { event.target.value = ""; table.search(""); }
});
for (const key of ["across", "up"]) {
  byId(key).addEventListener("change", (event) => { state[key] = event.target.value; drawFigures(); });
}
byId("contrast")?.addEventListener("change", (event) => {
  state.contrast = Number(event.target.value);
  current = contrastOf(state.contrast);
  hover(-1, volcano);
  table.update();
  drawFigures();
  if (table.query) table.search(byId("search").value);
  if (state.selected >= 0) select(state.selected);
});
byId("first").addEventListener("click", () => table.turnTo(0));
byId("previous").addEventListener("click", () => table.turnTo(table.page - 1));
byId("next").addEventListener("click", () => table.turnTo(table.page + 1));
byId("last").addEventListener("click", () => table.turnTo(table.pages - 1));
byId("size").addEventListener("change", (event) => { table.size = Number(event.target.value); table.turnTo(0); });
byId("download").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([table.csv()], { type: "text/csv" }));
  const link = make("a", { href: url, download: "features.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
});

/* The button overrides the system's setting, and is remembered where storage allows. */
const wish = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (wish.matches ? "dark" : "light")) === "dark";
function showTheme() {
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}
try {
  const kept = localStorage.getItem("ebda-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* a page from a file may have no storage */ }
byId("theme").addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("ebda-theme", next); } catch { /* as above */ }
  showTheme();
});
wish.addEventListener("change", showTheme);
showTheme();
