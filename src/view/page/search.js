// Search: words that must all match. Ops and states by name, rank:N and the like by number, all else as part of a source
// line. Boxes that do not match fade.

const KEYS = {
  rank: (t, r) => t.block.rank[blockOfRecord(t, r)], tb: (t, r) => t.block.tb[blockOfRecord(t, r)],
  step: (t, r) => t.step.number[t.record.step[r]], batch: (t, r) => t.record.batch[r],
  channel: null, peer: null, line: null, op: null,
};

// A test (trace, record) -> bool for one word.
function testFor(word) {
  const lower = word.toLowerCase(), [key, value] = lower.includes(":") ? [lower.slice(0, lower.indexOf(":")), lower.slice(lower.indexOf(":") + 1)] : ["", lower];
  const number = /^\d+$/.test(value) ? Number(value) : null;
  if (key in KEYS && KEYS[key] && number !== null) return (t, r) => KEYS[key](t, r) === number;
  if (key === "peer" && number !== null) return (t, r) => t.step.recvRank[t.record.step[r]] === number || t.step.sendRank[t.record.step[r]] === number;
  if (key === "channel" && number !== null) return (t, r) => t.step.recvChannel[t.record.step[r]] === number || t.step.sendChannel[t.record.step[r]] === number;
  if (lower === "critical") return (t, r) => t.record.critical[r] === 1;
  const state = page.states.findIndex(s => s.name === lower || s.name === "wait " + lower);
  if (state >= 0) return (t, r) => t.record.state[r] === state;
  if (lower === "wait" || lower === "waiting") return (t, r) => t.record.state[r] !== 0;
  const op = page.ops.findIndex(o => o.known && o.name === (key === "op" ? value : lower));
  if (op >= 0) return (t, r) => t.step.op[t.record.step[r]] === op;
  const part = key === "line" ? ":" + value : lower;
  const hits = page.traces.map(t => t.places.map(place => part === "" ? false : key === "line" ? place.toLowerCase().endsWith(part) : place.toLowerCase().includes(part)));
  return (t, r) => { const place = t.step.place[t.record.step[r]]; return place >= 0 && hits[t.index][place]; };
}

function search(text) {
  const words = text.trim().split(/\s+/).filter(w => w !== "");
  const joined = []; // "rank 3" is as good as "rank:3"
  for (const word of words) {
    const before = joined[joined.length - 1];
    if (/^\d+$/.test(word) && before !== undefined && before.toLowerCase() in KEYS) joined[joined.length - 1] = before + ":" + word;
    else joined.push(word);
  }
  view.matches = null;
  view.matchCount = 0;
  if (joined.length > 0) {
    const tests = joined.map(testFor);
    view.matches = page.traces.map(trace => {
      const marks = new Uint8Array(trace.kind.length);
      for (let r = 0; r < marks.length; r++) {
        marks[r] = tests.every(test => test(trace, r)) ? 1 : 0;
        if (view.shown.includes(trace)) view.matchCount += marks[r];
      }
      return marks;
    });
  }
  document.getElementById("matches").textContent = joined.length > 0 ? `${view.matchCount.toLocaleString("en")} found` : "";
  document.getElementById("critical").setAttribute("aria-pressed", String(/(^|\s)critical(\s|$)/.test(text)));
  redrawSoon();
}

// The match after (direction 1) or before (-1) the selection, over all blocks, by time.
function nextMatch(direction) {
  const trace = view.selected && view.shown.includes(view.selected.trace) ? view.selected.trace : view.shown[0];
  if (!view.matches || !trace) return;
  const marks = view.matches[trace.index], {begin} = trace.record, current = view.selected && view.selected.trace === trace ? view.selected.record : -1;
  let best = -1, wrap = -1;
  const before = (a, b) => begin[a] < begin[b] || (begin[a] === begin[b] && a < b);
  const better = direction > 0 ? before : (a, b) => before(b, a);
  for (let i = 0; i < marks.length; i++) {
    if (!marks[i] || i === current) continue;
    if (wrap < 0 || better(i, wrap)) wrap = i;
    if (current >= 0 && better(current, i) && (best < 0 || better(i, best))) best = i;
  }
  const chosen = best >= 0 ? best : wrap;
  if (chosen >= 0) reveal(trace, chosen);
}
