// The texts of boxes, for the tip, the details and the screen reader.

// A time in us as text, with as many digits as `resolution` (us) needs.
function formatTime(us, resolution) {
  const size = Math.max(Math.abs(us), 1e-9), unit = size >= 1e6 ? [1e6, "s"] : size >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10((resolution || size / 100) / unit[0]))));
  return (us / unit[0]).toFixed(digits) + " " + unit[1];
}

function stepName(trace, step) {
  const block = trace.step.block[step];
  return `rank ${trace.block.rank[block]}, thread block ${trace.block.tb[block]}, step ${trace.step.number[step]}`;
}

function placeOf(trace, step) {
  const place = trace.step.place[step];
  return place >= 0 ? trace.places[place] : "";
}

// "i3 + message -> o3, 2 chunks"
function effectOf(page, trace, step) {
  const s = trace.step, traits = page.ops[s.op[step]], buffers = ["input", "output", "scratch"];
  if (!traits.known) return "";
  const parts = [];
  if (traits.writes && traits.readsDst) parts.push(`${buffers[s.dstBuf[step]]} ${s.dst[step]}`);
  if (traits.reads) parts.push(`${buffers[s.srcBuf[step]]} ${s.src[step]}`);
  if (traits.receives) parts.push("message");
  const ends = [];
  if (traits.writes) ends.push(`${buffers[s.dstBuf[step]]} ${s.dst[step]}`);
  if (traits.sends) ends.push("message out");
  if (ends.length === 0) return "";
  const count = s.count[step];
  return `${parts.join(" + ")} \u2192 ${ends.join(", ")}${count > 1 ? `, ${count} chunks` : ""}`;
}

function waitsOf(trace, step) {
  const from = trace.step.wait[step], names = [];
  for (let i = 0; i < trace.step.waits[step]; i++) names.push(`${trace.wait[2 * (from + i)]}.${trace.wait[2 * (from + i) + 1]}`);
  return names;
}

function reasonOf(trace, record) {
  const step = trace.record.step[record], s = trace.step;
  switch (trace.record.state[record]) {
    case 1: return `waits for data from rank ${s.recvRank[step]} (channel ${s.recvChannel[step]})`;
    case 2: return `waits for credit: rank ${s.sendRank[step]} has freed no slot (channel ${s.sendChannel[step]})`;
    case 3: {
      const names = waitsOf(trace, step).map(name => name.split("."));
      return names.length === 0 ? "waits for another thread block"
          : "waits for " + names.map(n => `thread block ${n[0]}, step ${n[1]}`).join("; ");
    }
    default: return "";
  }
}

function titleOf(page, trace, record) {
  const step = trace.record.step[record], op = page.ops[trace.step.op[step]];
  const name = op.known ? op.name : placeOf(trace, step) || "step";
  return trace.record.state[record] === 0 ? name : `${name}: ${page.states[trace.record.state[record]].title}`;
}

// Rows [term, text, kind]. `kind` is "code", or {go: record} for a link to another box, or missing.
function describe(page, trace, record) {
  const step = trace.record.step[record], s = trace.step, r = trace.record, block = s.block[step];
  const rows = [];
  if (page.traces.length > 1) rows.push(["trace", trace.source]);
  const reason = reasonOf(trace, record);
  if (reason) rows.push(["reason", reason]);
  if (placeOf(trace, step)) rows.push(["source", placeOf(trace, step), "code"]);
  rows.push(["where", `rank ${trace.block.rank[block]}, thread block ${trace.block.tb[block]}, step ${s.number[step]}`]);
  rows.push(["micro-batch", String(r.batch[record])]);
  const effect = effectOf(page, trace, step);
  if (effect) rows.push(["effect", effect]);
  if (s.recvRank[step] >= 0) rows.push(["from", `rank ${s.recvRank[step]}, channel ${s.recvChannel[step]}`]);
  if (s.sendRank[step] >= 0) rows.push(["to", `rank ${s.sendRank[step]}, channel ${s.sendChannel[step]}`]);
  if (s.waits[step] > 0 && r.state[record] !== 3) rows.push(["after", waitsOf(trace, step).map(n => "step " + n).join(", ")]);
  const length = r.end[record] - r.begin[record];
  const digits = Math.max(length / 100, 1e-4);
  rows.push(["time", `${formatTime(r.begin[record], digits)} to ${formatTime(r.end[record], digits)}: ${formatTime(length)}`]);
  if (r.critical[record]) rows.push(["critical", "on the critical path"]);
  if (r.message[record] >= 0) rows.push(["sent by", stepName(trace, r.step[r.message[record]]), {go: r.message[record]}]);
  const receiver = r.state[record] === 0 && s.sendRank[step] >= 0 ? receiverOf(trace, record) : -1;
  if (receiver >= 0) rows.push(["received by", stepName(trace, r.step[receiver]), {go: receiver}]);
  return rows;
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made[name] = value;
  made.append(...children);
  return made;
}

function describeInto(target, page, trace, record, go) {
  const title = element("div", {className: "box-title"}, element("i"), titleOf(page, trace, record));
  title.firstChild.style.background = view.paints[trace.kind[record]];
  const list = element("dl", {className: "box"});
  for (const [term, text, kind] of describe(page, trace, record)) {
    const value = element("dd", {className: kind === "code" ? "code" : ""});
    if (go && kind && kind.go !== undefined) value.append(element("button", {onclick: () => go(trace, kind.go)}, text));
    else value.textContent = text;
    list.append(element("dt", {}, term), value);
  }
  target.replaceChildren(title, list);
}
