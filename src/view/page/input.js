// Handles the pointer and the keyboard.

function hitAt(x, y) {
  const width = blocksPane.clientWidth;
  if (y < AXIS || x > width - rightGap() + 4) return null;
  const index = rowAt(y - AXIS + blocksPane.scrollTop);
  if (index < 0) return null;
  const row = view.rows[index], inRow = y - AXIS + blocksPane.scrollTop;
  if (inRow > row.y + row.height + 2) return null;
  if (x < GUTTER) return {row, record: -1};
  const time = xToTime(x, width), slack = 2 * (view.end - view.begin) / plotWidth(width);
  for (const part of partsOf(row)) {
    if (inRow < part.y - 1 || inRow > part.y + part.height + 1) continue;
    for (const block of part.blocks) {
      const record = recordAt(part.trace, block, time, slack);
      if (record >= 0) return {row, trace: part.trace, record};
    }
  }
  return {row, record: -1};
}

function select(trace, record) {
  view.selected = {trace, record};
  const details = document.getElementById("details");
  details.hidden = false;
  describeInto(details, page, trace, record, reveal);
  details.querySelector(".box-title").append(element("button", {textContent: "\u00d7", title: "Close (key esc)", ariaLabel: "Close", onclick: clearSelection}));
  document.getElementById("live").textContent = titleOf(page, trace, record) + ". " + describe(page, trace, record).map(([term, text]) => `${term} ${text}`).join(". ");
  redrawSoon();
}

function clearSelection() {
  view.selected = null;
  document.getElementById("details").hidden = true;
  redrawSoon();
}

// Selects the box and moves it into view.
function reveal(trace, record) {
  const block = blockOfRecord(trace, record), rank = trace.block.rank[block];
  if (!view.shown.includes(trace)) showTraces([trace]);
  if (view.collapsed.delete(rank)) layout();
  const row = view.rows[rowOfBlock(rank, trace.block.tb[block])], room = blocksPane.clientHeight - AXIS;
  if (row.y < blocksPane.scrollTop || row.y + row.height > blocksPane.scrollTop + room) blocksPane.scrollTop = row.y - room / 2;
  const begin = trace.record.begin[record], end = trace.record.end[record], span = view.end - view.begin;
  if (end < view.begin + span * 0.02 || begin > view.end - span * 0.02) setSpan((begin + end) / 2 - span / 2, (begin + end) / 2 + span / 2);
  select(trace, record);
}

function zoomTo(trace, record) {
  const begin = trace.record.begin[record], end = trace.record.end[record], room = Math.max(end - begin, MIN_SPAN) * 4;
  setSpan(begin - room, end + room);
}

function showTip(hit, x, y) {
  const tip = document.getElementById("tip"), same = hit && view.hovered && view.hovered.trace === hit.trace && view.hovered.record === hit.record;
  if (!hit || hit.record < 0) {
    tip.hidden = true;
    if (view.hovered) { view.hovered = null; redrawSoon(); }
    return;
  }
  if (!same) {
    view.hovered = {trace: hit.trace, record: hit.record};
    describeInto(tip, page, hit.trace, hit.record, null);
    redrawSoon();
  }
  tip.hidden = false;
  placeTip(tip, x, y);
}

function placeTip(tip, x, y) {
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 16 + box.width > window.innerWidth ? x - box.width - 12 : x + 16) + "px";
  tip.style.top = Math.max(4, y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18) + "px";
}

function showLinkTip(event) {
  const tip = document.getElementById("tip"), at = linksPane.getBoundingClientRect(), lines = linkAt(event.clientX - at.left, event.clientY - at.top);
  tip.hidden = lines === null;
  if (lines === null) return;
  tip.replaceChildren(element("div", {className: "box-title"}, lines[0]), ...lines.slice(1).map(line => element("div", {}, line)));
  placeTip(tip, event.clientX, event.clientY);
}

function toggleRank(rank) {
  if (!view.collapsed.delete(rank)) view.collapsed.add(rank);
  layout();
  redrawSoon();
}

function listenToPointer() {
  let drag = null;
  const local = event => { const box = blocksPane.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  blocksPane.addEventListener("pointerdown", event => {
    if (event.button !== 0 || event.offsetX > blocksPane.clientWidth) return;
    drag = {x: event.clientX, y: event.clientY, begin: view.begin, end: view.end, scroll: blocksPane.scrollTop, moved: false, id: event.pointerId};
  });
  blocksPane.addEventListener("pointermove", event => {
    const [x, y] = local(event);
    if (!drag) {
      const hit = hitAt(x, y);
      blocksPane.classList.toggle("over-box", hit !== null && (hit.record >= 0 || x < GUTTER));
      showTip(hit, event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    if (!drag.moved) {
      drag.moved = true;
      try { blocksPane.setPointerCapture(drag.id); } catch (error) { /* the pointer is gone already */ }
      blocksPane.classList.add("dragging");
      showTip(null);
    }
    const shift = dx / plotWidth(blocksPane.clientWidth) * (drag.end - drag.begin);
    blocksPane.scrollTop = drag.scroll - dy;
    setSpan(drag.begin - shift, drag.end - shift);
  });
  const finish = event => {
    const was = drag;
    drag = null;
    blocksPane.classList.remove("dragging");
    if (!was || was.moved || event.type !== "pointerup") return;
    const [x, y] = local(event), hit = hitAt(x, y);
    if (hit && hit.record >= 0) select(hit.trace, hit.record);
    else if (hit && x < GUTTER) toggleRank(hit.row.rank);
    else clearSelection();
  };
  blocksPane.addEventListener("pointerup", finish);
  blocksPane.addEventListener("pointercancel", finish);
  blocksPane.addEventListener("pointerleave", () => showTip(null));
  blocksPane.addEventListener("dblclick", event => {
    const hit = hitAt(...local(event));
    if (hit && hit.record >= 0) zoomTo(hit.trace, hit.record);
  });
  blocksPane.addEventListener("wheel", event => {
    if (event.shiftKey) return; // the browser scrolls over the ranks
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 300 : 1, width = blocksPane.clientWidth;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = event.deltaX * unit / plotWidth(width) * (view.end - view.begin);
      setSpan(view.begin + shift, view.end + shift);
    } else {
      zoomBy(Math.exp(Math.max(-400, Math.min(400, event.deltaY * unit)) * 0.0022), xToTime(Math.max(GUTTER, local(event)[0]), width));
    }
  }, {passive: false});
  blocksPane.addEventListener("scroll", redrawSoon);
  linksPane.addEventListener("scroll", redrawSoon);
  linksPane.addEventListener("pointermove", showLinkTip);
  linksPane.addEventListener("pointerleave", () => showTip(null));
  const jump = event => {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    const box = overview.getBoundingClientRect(), at = (event.clientX - box.left - GUTTER) / plotWidth(box.width) * spanOf(), half = (view.end - view.begin) / 2;
    setSpan(at - half, at + half);
  };
  overview.addEventListener("pointerdown", jump);
  overview.addEventListener("pointermove", jump);
}

// Selects a neighbour of the selection: in its block, or in the next block at the same time.
function stepSelection(along, across) {
  if (!view.selected) {
    const trace = view.shown[0];
    if (trace.kind.length > 0) reveal(trace, 0);
    return;
  }
  const {trace, record} = view.selected, block = blockOfRecord(trace, record), count = trace.block.rank.length;
  if (along !== 0) {
    const next = record + along;
    if (next >= trace.block.record[block] && next < trace.block.record[block + 1]) reveal(trace, next);
    return;
  }
  const middle = (trace.record.begin[record] + trace.record.end[record]) / 2;
  for (let next = block + across; next >= 0 && next < count; next += across) {
    const found = recordAt(trace, next, middle, Infinity);
    if (found >= 0) { reveal(trace, found); return; }
  }
}

const COMMANDS = {
  ArrowLeft: () => stepSelection(-1, 0), ArrowRight: () => stepSelection(1, 0),
  ArrowUp: () => stepSelection(0, -1), ArrowDown: () => stepSelection(0, 1),
  "+": () => zoomAtSelection(0.7), "=": () => zoomAtSelection(0.7), "-": () => zoomAtSelection(1 / 0.7),
  a: () => panBy(-0.15), d: () => panBy(0.15),
  w: () => { blocksPane.scrollTop -= 60; }, s: () => { blocksPane.scrollTop += 60; },
  0: fitAll, Home: fitAll,
  Enter: () => { if (view.selected) zoomTo(view.selected.trace, view.selected.record); },
  m: () => { const at = view.selected; if (at && at.trace.record.message[at.record] >= 0) reveal(at.trace, at.trace.record.message[at.record]); },
  " ": () => { const at = view.selected; if (at) toggleRank(at.trace.block.rank[blockOfRecord(at.trace, at.record)]); },
  n: () => nextMatch(1), p: () => nextMatch(-1),
  c: () => document.getElementById("critical").click(), x: () => document.getElementById("collapse").click(),
  t: () => document.getElementById("theme").click(), "?": () => document.getElementById("help").click(),
  "/": () => document.getElementById("search").focus(),
  Escape: () => { const field = document.getElementById("search"); field.value = ""; search(""); clearSelection(); },
};

function panBy(share) { const shift = (view.end - view.begin) * share; setSpan(view.begin + shift, view.end + shift); }

function zoomAtSelection(factor) {
  const at = view.selected, middle = at ? (at.trace.record.begin[at.record] + at.trace.record.end[at.record]) / 2 : undefined;
  zoomBy(factor, middle !== undefined && middle > view.begin && middle < view.end ? middle : undefined);
}

function listenToKeys() {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target instanceof HTMLInputElement) {
      if (event.key === "Enter") { event.preventDefault(); nextMatch(event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { target.value = ""; search(""); blocksPane.focus(); }
      return;
    }
    if (target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter")) return;
    const command = Object.hasOwn(COMMANDS, event.key) ? COMMANDS[event.key] : undefined;
    if (command) { event.preventDefault(); command(); }
  });
}
