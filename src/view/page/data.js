// The data of the page: the arrays of each trace, unpacked from base64 (little-endian), and what is derived from them.

const TYPES = {f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, u1: Uint8Array};

// `text` is the type, a colon, and the bytes in base64: "i4:AQAAAA==".
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

// The first index in [low, high) whose value is greater than `value`. The values ascend.
function upperBound(values, value, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

// trace.kind is the index of the paint of each record: first come the ops, then the waiting states.
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
  trace.receivers = null;
  trace.short = {simulated: "sim", measured: "run"}[trace.source] || trace.source.slice(0, 7);
  trace.hasCritical = trace.record.critical.some(x => x === 1);
  return trace;
}

function loadPage() {
  const page = JSON.parse(document.getElementById("data").textContent);
  page.traces.forEach((trace, index) => {
    if (index > 0 && trace.source === page.traces[0].source) trace.source = "recorded"; // two traces of one source
    prepareTrace(trace, index, page);
  });
  return page;
}

// The record that receives what `record` sent, or -1. The map is the reverse of record.message, made on first use.
function receiverOf(trace, record) {
  if (trace.receivers === null) {
    trace.receivers = new Map();
    trace.record.message.forEach((sender, i) => { if (sender >= 0) trace.receivers.set(sender, i); });
  }
  const found = trace.receivers.get(record);
  return found === undefined ? -1 : found;
}

function blockOfRecord(trace, record) { return trace.step.block[trace.record.step[record]]; }

// The record of a block at `time`, else a record not farther than `slack` from it, else -1.
function recordAt(trace, block, time, slack) {
  const first = trace.block.record[block], last = trace.block.record[block + 1];
  const {begin, end} = trace.record;
  const i = upperBound(begin, time, first, last) - 1;
  if (i >= first && end[i] >= time) return i;
  if (i >= first && time - end[i] <= slack) return i;
  if (i + 1 < last && begin[i + 1] - time <= slack) return i + 1;
  return -1;
}

// The shares of the thread blocks' time: [busy, wait data, wait credit, wait block, idle].
function sharesOf(trace) {
  const {begin, end, state} = trace.record, sums = [0, 0, 0, 0, 0];
  for (let i = 0; i < state.length; i++) sums[state[i]] += end[i] - begin[i];
  const whole = trace.duration * trace.block.rank.length;
  sums[4] = Math.max(0, whole - sums[0] - sums[1] - sums[2] - sums[3]);
  return sums.map(x => whole > 0 ? x / whole : 0);
}
