// Sets up the page: head, legend, theme, buttons, the redrawing.

let redrawAsked = false;
function redrawSoon() {
  if (redrawAsked) return;
  redrawAsked = true;
  requestAnimationFrame(redraw);
}

function redraw() {
  redrawAsked = false;
  drawLinks(); // its height decides the height of the blocks
  const stats = drawBlocks();
  drawOverview();
  return stats;
}

function layout() {
  drawLinks();
  layoutRows(blocksPane.clientHeight - AXIS - 10);
}

function toRgb(hex) { return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)); }

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  view.dark = dark;
  const all = page.ops.concat(page.states.slice(1));
  view.paints = all.map(paint => dark ? paint.dark : paint.light);
  view.rgb = view.paints.map(toRgb);
  view.text = view.rgb.map(([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#15181c" : "#ffffff");
  const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue("--" + name).trim();
  view.colors = Object.fromEntries(["ground", "panel", "ink", "soft", "faint", "line", "stripe", "accent", "mark"].map(n => [n, color(n)]));
  document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  fillLegend();
  fillSummary();
  redrawSoon();
}

function fillHead() {
  document.getElementById("title").textContent = page.title;
  document.getElementById("facts").replaceChildren(...page.facts.map(([term, text]) =>
    element("div", {}, element("dt", {}, term), element("dd", {}, text))));
}

function fillLegend() {
  const used = new Set();
  for (const trace of page.traces) trace.kind.forEach(kind => used.add(kind));
  const entry = (kind, name, title, wait) => {
    const swatch = element("i", {className: wait ? "wait" : ""});
    swatch.style.background = view.paints[kind];
    return element("button", {title: `Search for ${wait ? title : name}`, onclick: () => { document.getElementById("search").value = name; search(name); }},
      swatch, element("b", {}, wait ? title : name), wait ? "" : title);
  };
  const parts = [];
  page.ops.forEach((op, kind) => { if (used.has(kind) && op.known) parts.push(entry(kind, op.name, op.title, false)); });
  page.states.forEach((state, i) => { if (i > 0 && used.has(page.ops.length + i - 1)) parts.push(entry(page.ops.length + i - 1, state.name.replace("wait ", ""), state.title, true)); });
  document.getElementById("legend").replaceChildren(...parts);
}

function fillSummary() {
  const rows = view.shown.map(trace => {
    const bar = element("div", {className: "bar", role: "img"}), spoken = [];
    sharesOf(trace).forEach((share, i) => {
      const name = i === 4 ? "idle" : i === 0 ? "busy" : page.states[i].title, text = `${name} ${(100 * share).toFixed(0)} %`;
      const piece = element("i", {className: i === 4 ? "idle" : "", title: text}, share > 0.08 ? text : "");
      const paint = i === 0 ? view.colors.accent : i < 4 ? view.paints[page.ops.length + i - 1] : "transparent";
      piece.style.width = 100 * share + "%";
      piece.style.background = paint;
      if (i < 4) piece.style.color = paint.startsWith("#") && toRgb(paint).reduce((a, b) => a + b) > 420 ? "#15181c" : "#fff";
      if (share > 0) { bar.append(piece); spoken.push(text); }
    });
    bar.ariaLabel = spoken.join(", ");
    return element("div", {className: "spend"}, element("b", {}, `${trace.source} `, element("span", {}, formatTime(trace.duration))), bar);
  });
  document.getElementById("summary").replaceChildren(...rows);
}

function showTraces(traces) {
  view.shown = traces;
  document.querySelectorAll("#sources button").forEach((button, i) => {
    const wanted = i < page.traces.length ? [page.traces[i]] : page.traces;
    button.setAttribute("aria-pressed", String(wanted.length === traces.length && wanted.every((t, k) => t === traces[k])));
  });
  fillSummary();
  search(document.getElementById("search").value);
  const links = linksTrace();
  document.getElementById("links-note").textContent = links ? `${links.busyLinks.length} of ${links.links.length} carry data (${links.source}); mean share of their bandwidth` : "";
  layout();
  redrawSoon();
}

function fillSources() {
  const group = document.getElementById("sources");
  if (page.traces.length < 2) return;
  group.hidden = false;
  for (const trace of page.traces) group.append(element("button", {onclick: () => { showTraces([trace]); fitAll(); }}, trace.source));
  group.append(element("button", {onclick: () => { showTraces(page.traces); fitAll(); }}, "both"));
}

function listenToButtons() {
  const on = (id, action) => document.getElementById(id).addEventListener("click", action);
  on("zoom-in", () => zoomAtSelection(0.6));
  on("zoom-out", () => zoomAtSelection(1 / 0.6));
  on("fit", fitAll);
  on("theme", () => setTheme(!view.dark));
  on("help", () => {
    const keys = document.getElementById("keys");
    keys.hidden = !keys.hidden;
    document.getElementById("help").setAttribute("aria-expanded", String(!keys.hidden));
    layout();
    redrawSoon();
  });
  on("collapse", () => {
    const ranks = allBlocks().map(([rank]) => rank), fold = view.collapsed.size < ranks.length;
    view.collapsed = new Set(fold ? ranks : []);
    layout();
    redrawSoon();
  });
  on("critical", () => {
    const field = document.getElementById("search");
    field.value = field.value.trim() === "critical" ? "" : "critical";
    search(field.value);
  });
  on("links-toggle", () => {
    linksPane.hidden = !linksPane.hidden;
    document.getElementById("links-toggle").setAttribute("aria-expanded", String(!linksPane.hidden));
    layout();
    redrawSoon();
  });
  document.getElementById("search").addEventListener("input", event => search(event.target.value));
  new ResizeObserver(() => { layout(); redrawSoon(); }).observe(blocksPane);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => setTheme(dark.matches));
  return dark.matches;
}

function start() {
  const maxRows = 120; // pages with more rows start folded
  if (page.traces.some(trace => trace.block.rank.length > maxRows)) view.collapsed = new Set(allBlocks().map(([rank]) => rank));
  page.traces.forEach(prepareLinks);
  document.getElementById("critical").hidden = !page.traces.some(trace => trace.hasCritical);
  view.shown = [page.traces[0]];
  fillHead();
  fillSources();
  setTheme(listenToButtons());
  showTraces(page.traces);
  listenToPointer();
  listenToKeys();
  fitAll();
  redraw();
}

start();
// For the console: look at the data, control the page, time a redraw.
window.polyccl = {page, view, boxRect, select, reveal, setSpan, fitAll, search, redraw, setTheme};
