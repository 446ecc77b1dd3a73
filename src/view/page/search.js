// The search. All words must match: ops and states by name, rank:N and the like by number, anything else as a part of a
// source line. Boxes that do not match fade.

// By field the numbers that a record has there.
const FIELDS = {
  rank: (trace, record) => [trace.block.rank[blockOfRecord(trace, record)]],
  tb: (trace, record) => [trace.block.tb[blockOfRecord(trace, record)]],
  step: (trace, record) => [trace.step.number[trace.record.step[record]]],
  batch: (trace, record) => [trace.record.batch[record]],
  peer: (trace, record) => [trace.step.recvRank, trace.step.sendRank].map(ranks => ranks[trace.record.step[record]]),
  channel: (trace, record) => [trace.step.recvChannel, trace.step.sendChannel].map(channels => channels[trace.record.step[record]]),
  line: null, op: null,
};

// Returns the test for one word, a function (trace, record) -> bool.
function testFor(word) {
  const lower = word.toLowerCase(), colon = lower.indexOf(":");
  const key = colon >= 0 ? lower.slice(0, colon) : "", value = lower.slice(colon + 1);
  const number = /^\d+$/.test(value) ? Number(value) : null;
  if (key in FIELDS && FIELDS[key] && number !== null) return (trace, record) => FIELDS[key](trace, record).includes(number);
  if (lower === "critical") return (trace, record) => trace.record.critical[record] === 1;
  const state = page.states.findIndex(s => s.name === lower || s.name === "wait " + lower);
  if (state >= 0) return (trace, record) => trace.record.state[record] === state;
  if (lower === "wait" || lower === "waiting") return (trace, record) => trace.record.state[record] !== 0;
  const op = page.ops.findIndex(o => o.known && o.name === (key === "op" ? value : lower));
  if (op >= 0) return (trace, record) => trace.step.op[trace.record.step[record]] === op;
  const part = key === "line" ? ":" + value : lower;
  const contains = place => key === "line" ? place.endsWith(part) : place.includes(part);
  const hits = page.traces.map(trace => trace.places.map(place => part !== "" && contains(place.toLowerCase())));
  return (trace, record) => { const place = trace.step.place[trace.record.step[record]]; return place >= 0 && hits[trace.index][place]; };
}

function search(text) {
  const words = text.trim().split(/\s+/).filter(w => w !== "");
  const joined = []; // "rank 3" means "rank:3"
  for (const word of words) {
    const before = joined[joined.length - 1];
    if (/^\d+$/.test(word) && before !== undefined && before.toLowerCase() in FIELDS) joined[joined.length - 1] = before + ":" + word;
    else joined.push(word);
  }
  view.matches = null;
  view.matchCount = 0;
  if (joined.length > 0) {
    const tests = joined.map(testFor);
    view.matches = page.traces.map(trace => {
      const marks = new Uint8Array(trace.kind.length);
      for (let record = 0; record < marks.length; record++) {
        marks[record] = tests.every(test => test(trace, record)) ? 1 : 0;
        if (view.shown.includes(trace)) view.matchCount += marks[record];
      }
      return marks;
    });
  }
  document.getElementById("matches").textContent = joined.length > 0 ? `${view.matchCount.toLocaleString("en")} found` : "";
  document.getElementById("critical").setAttribute("aria-pressed", String(/(^|\s)critical(\s|$)/.test(text)));
  redrawSoon();
}

// Selects the match after (direction 1) or before (-1) the selection, over all blocks, in order of time.
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
