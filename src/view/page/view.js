// The state of the page: the span of time, the rows, the selection, the matches of a search. All that draws reads it.

const page = loadPage();
const view = {
  begin: 0, end: 1,              // us
  shown: [],                     // traces, in order
  rows: [], height: 0,           // [{rank, tb, first, tbs, y, height}], sorted by y; tb -1: a folded rank
  collapsed: new Set(),          // ranks
  selected: null, hovered: null, // {trace, record}
  matches: null,                 // per trace Uint8Array over records, or null
  paints: [], dark: false,
};
const GUTTER = 118, AXIS = 24, RANK_GAP = 7, MIN_SPAN = 1e-5;

function spanOf() { return Math.max(...view.shown.map(t => t.duration), MIN_SPAN * 10); }
function rightGap() { return 14; }
function plotWidth(width) { return Math.max(50, width - GUTTER - rightGap()); }

function allBlocks() {
  const blocks = new Map(); // rank -> Set of tb
  for (const trace of page.traces) {
    for (let i = 0; i < trace.block.rank.length; i++) {
      const rank = trace.block.rank[i];
      if (!blocks.has(rank)) blocks.set(rank, new Set());
      blocks.get(rank).add(trace.block.tb[i]);
    }
  }
  return [...blocks].sort((a, b) => a[0] - b[0]).map(([rank, tbs]) => [rank, [...tbs].sort((a, b) => a - b)]);
}

// Rows are as high as the window allows, within the bounds in which boxes can be read.
function layoutRows(available) {
  const ranks = allBlocks(), parts = view.shown.length;
  const count = ranks.reduce((sum, [rank, tbs]) => sum + (view.collapsed.has(rank) ? 1 : tbs.length), 0);
  const wanted = (available - ranks.length * RANK_GAP) / Math.max(1, count);
  const height = Math.round(Math.min(26 * Math.sqrt(parts), Math.max(13 * parts + (parts - 1) * 3, wanted)));
  let y = 4;
  view.rows = [];
  for (const [rank, tbs] of ranks) {
    const folded = view.collapsed.has(rank);
    for (const tb of folded ? [-1] : tbs) {
      view.rows.push({rank, tb, first: folded || tb === tbs[0], tbs, y, height: height - 2});
      y += height;
    }
    y += RANK_GAP;
  }
  view.height = y;
}

function rowAt(y) {
  let low = 0, high = view.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (view.rows[middle].y > y) high = middle; else low = middle + 1;
  }
  return low - 1;
}

function rowOfBlock(rank, tb) {
  return view.rows.findIndex(row => row.rank === rank && (row.tb === tb || row.tb === -1));
}

// The traces that a row shows, each with its part of the height: [{trace, blocks, y, height}].
function partsOf(row) {
  const count = view.shown.length, gap = count > 1 ? 1 : 0;
  const height = (row.height - gap * (count - 1)) / count;
  return view.shown.map((trace, i) => {
    const blocks = [];
    for (const tb of row.tb === -1 ? row.tbs : [row.tb]) {
      const block = trace.blocksOf.get(row.rank + "." + tb);
      if (block !== undefined) blocks.push(block);
    }
    return {trace, blocks, y: row.y + i * (height + gap), height};
  });
}

function setSpan(begin, end) {
  const whole = spanOf(), shortest = Math.max(MIN_SPAN, whole * 1e-9);
  let length = Math.min(Math.max(end - begin, shortest), whole * 1.04);
  const middle = (begin + end) / 2, low = -whole * 0.02, high = whole * 1.02;
  view.begin = Math.min(Math.max(middle - length / 2, low), high - length);
  view.end = view.begin + length;
  redrawSoon();
}

function fitAll() { const whole = spanOf(); setSpan(-whole * 0.005, whole * 1.012); }

// The time `at` stays in place.
function zoomBy(factor, at) {
  const middle = at === undefined ? (view.begin + view.end) / 2 : at;
  setSpan(middle - (middle - view.begin) * factor, middle + (view.end - middle) * factor);
}

function timeToX(time, width) { return GUTTER + (time - view.begin) / (view.end - view.begin) * plotWidth(width); }
function xToTime(x, width) { return view.begin + (x - GUTTER) / plotWidth(width) * (view.end - view.begin); }
