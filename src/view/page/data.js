// The page's data: arrays of the trace, unpacked from base64 (little-endian), and what is derived from them.

const TYPES = {f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, u1: Uint8Array};

// "i4:base64": the type, then the bytes.
function unpack(text) {
  const bytes = atob(text.slice(3));
  const store = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) store[i] = bytes.charCodeAt(i);
  return new TYPES[text.slice(0, 2)](store.buffer);
}

function unpackAll(object) {
  for (const key of Object.keys(object)) {
    if (typeof object[key] === "string" && /^(f8|f4|i4|u4|u1):/.test(object[key])) object[key] = unpack(object[key]);
  }
  return object;
}

// The first index in [low, high) whose value is greater than `value`; values ascend.
function upperBound(values, value, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

// kind: the index of the paint: ops first, then the waiting states.
function prepareTrace(trace, index, page) {
  trace.index = index;
  unpackAll(trace.block);
  unpackAll(trace.step);
  unpackAll(trace.record);
  unpackAll(trace.sample);
  trace.wait = unpack(trace.wait);
  const {step, state} = trace.record, count = step.length, op = trace.step.op;
  trace.kind = new Uint8Array(count);
  trace.blocksOf = new Map();
  for (let i = 0; i < count; i++) trace.kind[i] = state[i] === 0 ? op[step[i]] : page.ops.length + state[i] - 1;
  for (let i = 0; i < trace.block.rank.length; i++) trace.blocksOf.set(trace.block.rank[i] + "." + trace.block.tb[i], i);
  trace.readers = null;
  trace.short = {simulated: "sim", measured: "run"}[trace.source] || trace.source.slice(0, 7);
  trace.hasCritical = trace.record.critical.some(x => x === 1);
  return trace;
}

function loadPage() {
  const page = JSON.parse(document.getElementById("data").textContent);
  page.traces.forEach((trace, index) => {
    if (index > 0 && trace.source === page.traces[0].source) trace.source = "recorded"; // a simulation of another day
    prepareTrace(trace, index, page);
  });
  return page;
}

// The records that receive what `record` sent. The reverse of record.message, made when first asked for.
function receiversOf(trace, record) {
  if (trace.readers === null) {
    trace.readers = new Map();
    trace.record.message.forEach((sender, i) => { if (sender >= 0) trace.readers.set(sender, i); });
  }
  const found = trace.readers.get(record);
  return found === undefined ? -1 : found;
}

function blockOfRecord(trace, record) { return trace.step.block[trace.record.step[record]]; }

// The record of a block at `time`, or -1. With `slack` > 0 also the nearest one within it.
function recordAt(trace, block, time, slack) {
  const first = trace.block.record[block], last = trace.block.record[block + 1];
  const {begin, end} = trace.record;
  const i = upperBound(begin, time, first, last) - 1;
  if (i >= first && end[i] >= time) return i;
  if (i >= first && time - end[i] <= slack) return i;
  if (i + 1 < last && begin[i + 1] - time <= slack) return i + 1;
  return -1;
}

// Shares of thread block time: [busy, wait data, wait credit, wait block, idle].
function sharesOf(trace) {
  const {begin, end, state} = trace.record, sums = [0, 0, 0, 0, 0];
  for (let i = 0; i < state.length; i++) sums[state[i]] += end[i] - begin[i];
  const whole = trace.duration * trace.block.rank.length;
  sums[4] = Math.max(0, whole - sums[0] - sums[1] - sums[2] - sums[3]);
  return sums.map(x => whole > 0 ? x / whole : 0);
}
