// The blocks. Boxes narrower than a pixel or so are not drawn one by one: their colours are averaged over the pixels they
// cover, which is what a perfect renderer would show, at the price of one addition per box in view. Only records in the
// visible span of visible rows are looked at.

const BIG = 1.75; // pixels from which a box is drawn by itself

class Strips {
  // One line of pixels per part of a row: what is too small to draw.
  constructor() { this.canvas = document.createElement("canvas"); this.used = []; }
  begin(width, lines) {
    if (this.canvas.width !== width || this.canvas.height < lines) {
      this.canvas.width = width;
      this.canvas.height = Math.max(lines, 64);
      this.context = this.canvas.getContext("2d", {willReadFrequently: true});
      this.sums = new Float32Array(width * 4);
    }
    this.width = width;
    this.image = this.context.createImageData(width, Math.max(1, lines));
    this.lines = 0;
    this.used.length = 0;
  }
  clear() { this.sums.fill(0); this.touched = false; }
  add(x0, x1, rgb, weight) {
    const sums = this.sums, last = this.width - 1;
    if (x1 <= 0 || x0 >= this.width) return;
    x0 = Math.max(0, x0); x1 = Math.min(this.width, x1);
    this.touched = true;
    for (let p = Math.floor(x0); p <= last && p < x1; p++) {
      const cover = (Math.min(x1, p + 1) - Math.max(x0, p)) * weight, at = p * 4;
      sums[at] += rgb[0] * cover; sums[at + 1] += rgb[1] * cover; sums[at + 2] += rgb[2] * cover; sums[at + 3] += cover;
    }
  }
  // Puts the sums into the next line, to be drawn at (y, height).
  keep(y, height) {
    if (!this.touched) return;
    const out = this.image.data, sums = this.sums, offset = this.lines * this.width * 4;
    for (let i = 0, n = this.width * 4; i < n; i += 4) {
      const cover = sums[i + 3];
      if (cover <= 0) continue;
      out[offset + i] = sums[i] / cover; out[offset + i + 1] = sums[i + 1] / cover; out[offset + i + 2] = sums[i + 2] / cover;
      out[offset + i + 3] = Math.min(1, cover) * 255;
    }
    this.used.push([this.lines++, y, height]);
  }
  paint(context, x) {
    this.context.putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (const [line, y, height] of this.used) context.drawImage(this.canvas, 0, line, this.width, 1, x, y, this.width, height);
  }
}

const busyStrips = new Strips(), waitStrips = new Strips();

// A canvas as large as its place on the screen, in device pixels; the context draws in device pixels.
function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, w, h);
  return {context, ratio, width: w, height: h};
}

// Round times about `wish` pixels apart.
function ticksOf(begin, end, pixels, wish) {
  const raw = (end - begin) / Math.max(1, pixels / wish), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw);
  const ticks = [];
  for (let i = Math.ceil(begin / step); i * step <= end; i++) ticks.push(i * step);
  return {ticks, step};
}

function drawGrid(s, color, top, ink) {
  const {context, ratio} = s, cssWidth = s.width / ratio;
  const {ticks, step} = ticksOf(view.begin, view.end, plotWidth(cssWidth), 95);
  const biggest = Math.max(Math.abs(view.begin), Math.abs(view.end));
  const unit = biggest >= 1e6 ? [1e6, "s"] : biggest >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9)));
  context.fillStyle = color;
  for (const tick of ticks) context.fillRect(Math.round(timeToX(tick, cssWidth) * ratio), top * ratio, 1, s.height - top * ratio);
  if (!ink) return;
  context.fillStyle = ink;
  context.font = `${11 * ratio}px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const tick of ticks) {
    const x = timeToX(tick, cssWidth);
    if (x > GUTTER + 4 && x < cssWidth - 28 && tick >= -1e-12) context.fillText(`${(Math.abs(tick) / unit[0]).toFixed(digits)} ${unit[1]}`, x * ratio, AXIS / 2 * ratio);
  }
  context.textAlign = "left";
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Helvetica, Arial, sans-serif";

// One trace's records in one part of a row. Returns how many were looked at.
function drawPart(s, part, y, height, big) {
  const {ratio} = s, {trace, blocks} = part, {begin, end, state} = trace.record;
  const scale = plotWidth(s.width / ratio) * ratio / (view.end - view.begin);
  const matches = view.matches && view.matches[trace.index], single = blocks.length === 1, share = 1 / Math.max(1, part.blocks.length);
  let looked = 0;
  busyStrips.clear();
  waitStrips.clear();
  for (const block of blocks) {
    const first = trace.block.record[block], last = trace.block.record[block + 1];
    const from = Math.max(first, upperBound(begin, view.begin, first, last) - 1), to = upperBound(begin, view.end, from, last);
    const stride = Math.max(1, Math.floor((to - from) / (16 * busyStrips.width))); // beyond what pixels can tell: a sample
    for (let i = from, step = 1; i < to; i += step) {
      if (stride > 1) step = 1 + ((i * 2654435761 >>> 8) % (2 * stride - 1));
      const x0 = (begin[i] - view.begin) * scale, x1 = (end[i] - view.begin) * scale;
      looked++;
      if (x1 < 0) continue;
      const faded = matches && !matches[i];
      if (single && x1 - x0 >= BIG) { big.push(trace, i, x0, x1, faded, y, height); continue; }
      const strip = state[i] === 0 ? busyStrips : waitStrips;
      strip.add(x0, x1, view.rgb[trace.kind[i]], (faded ? 0.13 : 1) * share * (stride > 1 ? stride : 1));
    }
  }
  busyStrips.keep(y * ratio, height * ratio);
  waitStrips.keep((y + waitTop(height)) * ratio, waitHeight(height) * ratio);
  return looked;
}

function waitHeight(height) { return Math.max(3, Math.round(height * 0.3)); }
function waitTop(height) { return Math.round((height - waitHeight(height)) / 2); }

function drawBig(s, big) {
  const {context, ratio} = s, left = GUTTER * ratio, right = s.width - rightGap() * ratio;
  context.save();
  context.beginPath();
  context.rect(left, 0, right - left, s.height);
  context.clip();
  context.textBaseline = "middle";
  for (let b = 0; b < big.length; b += 7) {
    const trace = big[b], record = big[b + 1], faded = big[b + 4], y = big[b + 5], height = big[b + 6];
    const x0 = Math.max(big[b + 2] + left, left - 9), x1 = Math.min(big[b + 3] + left, right + 9), busy = trace.record.state[record] === 0;
    const gap = x1 - x0 > 6 * ratio ? ratio : x1 - x0 > 3 ? 0.5 : 0;
    context.globalAlpha = faded ? 0.13 : 1;
    context.fillStyle = view.paints[trace.kind[record]];
    if (busy) context.fillRect(x0, y * ratio, x1 - x0 - gap, height * ratio);
    else context.fillRect(x0, (y + waitTop(height)) * ratio, x1 - x0 - gap, waitHeight(height) * ratio);
    if (busy && x1 - x0 > 30 * ratio && height >= 11) drawBoxText(s, trace, record, x0, x1, y, height);
  }
  context.restore();
}

function drawBoxText(s, trace, record, x0, x1, y, height) {
  const {context, ratio} = s, step = trace.record.step[record], op = page.ops[trace.step.op[step]];
  const size = Math.min(12, height - 3), name = op.known ? op.name : placeOf(trace, step);
  context.font = `600 ${size * ratio}px ${FONT}`;
  context.fillStyle = view.text[trace.kind[record]];
  const room = x1 - x0 - 8 * ratio, width = context.measureText(name).width;
  if (width > room) return;
  context.fillText(name, x0 + 4 * ratio, (y + height / 2 + 0.5) * ratio);
  const line = placeOf(trace, step).replace(/^.*\//, "");
  const more = `  step ${trace.step.number[step]} \u00b7 batch ${trace.record.batch[record]}${line && op.known ? " \u00b7 " + line : ""}`;
  context.font = `${size * ratio}px ${FONT}`;
  if (width + context.measureText(more).width < room) context.fillText(more, x0 + 4 * ratio + width, (y + height / 2 + 0.5) * ratio);
}

function drawGutter(s, scroll, colors) {
  const {context, ratio} = s, bottom = s.height / ratio;
  context.textBaseline = "middle";
  for (let i = Math.max(0, rowAt(scroll)); i < view.rows.length; i++) {
    const row = view.rows[i], y = row.y - scroll + AXIS, middle = (y + row.height / 2) * ratio;
    if (y > bottom) break;
    context.fillStyle = colors.soft;
    context.textAlign = "right";
    const block = row.tb >= 0 && (row.tbs.length > 1 || row.tb > 0) ? `tb ${row.tb}` : "";
    if (view.shown.length > 1) {
      context.font = `${10 * ratio}px ${FONT}`;
      partsOf(row).forEach((part, k) => context.fillText(`${k === 0 ? block : ""} ${part.trace.short}`, (GUTTER - 9) * ratio, (part.y - scroll + AXIS + part.height / 2) * ratio));
    } else {
      context.font = `${11 * ratio}px ${FONT}`;
      context.fillText(block, (GUTTER - 9) * ratio, middle);
    }
    context.textAlign = "left";
    if (row.first || i === Math.max(0, rowAt(scroll))) { // a rank's name stays in view as long as one of its rows is
      const from = Math.max(middle, (AXIS + 9) * ratio);
      context.fillStyle = colors.ink;
      context.font = `600 ${12 * ratio}px ${FONT}`;
      context.fillText(`${view.collapsed.has(row.rank) ? "\u25b8" : "\u25be"} rank ${row.rank}`, 10 * ratio, from);
    }
  }
}

function boxRect(trace, record) {
  const block = blockOfRecord(trace, record), index = rowOfBlock(trace.block.rank[block], trace.block.tb[block]);
  if (index < 0 || !view.shown.includes(trace)) return null;
  const part = partsOf(view.rows[index])[view.shown.indexOf(trace)], width = blocksPane.clientWidth;
  const x0 = timeToX(trace.record.begin[record], width), x1 = timeToX(trace.record.end[record], width);
  return {x: x0, width: x1 - x0, y: part.y - blocksPane.scrollTop + AXIS, height: part.height};
}

function drawMessage(s, trace, from, to, color) {
  const a = boxRect(trace, from), b = boxRect(trace, to), {context, ratio} = s;
  if (!a || !b) return;
  const x0 = a.x + a.width / 2, y0 = a.y + a.height / 2, x1 = b.x + b.width / 2, y1 = b.y + b.height / 2, bend = Math.max(24, Math.abs(x1 - x0) * 0.4);
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 1.75 * ratio;
  context.beginPath();
  context.moveTo(x0 * ratio, y0 * ratio);
  context.bezierCurveTo((x0 + bend) * ratio, y0 * ratio, (x1 - bend) * ratio, y1 * ratio, x1 * ratio, y1 * ratio);
  context.stroke();
  for (const [x, y, r] of [[x0, y0, 3], [x1, y1, 4.5]]) { context.beginPath(); context.arc(x * ratio, y * ratio, r * ratio, 0, 7); context.fill(); }
}

function drawMarks(s, colors) {
  const {context, ratio} = s;
  context.save();
  context.beginPath();
  context.rect(GUTTER * ratio, AXIS * ratio, s.width, s.height);
  context.clip();
  for (const [mark, width] of [[view.hovered, 1], [view.selected, 2]]) {
    const box = mark && boxRect(mark.trace, mark.record);
    if (!box) continue;
    context.strokeStyle = colors.mark;
    context.lineWidth = width * ratio;
    context.strokeRect((box.x - 1) * ratio, (box.y - 1) * ratio, (Math.max(box.width, 2) + 2) * ratio, (box.height + 2) * ratio);
  }
  const chosen = view.selected || view.hovered;
  if (chosen) {
    const {trace, record} = chosen, sender = trace.record.message[record], receiver = trace.record.state[record] === 0 ? receiversOf(trace, record) : -1;
    if (sender >= 0) drawMessage(s, trace, sender, record, colors.mark);
    if (receiver >= 0) drawMessage(s, trace, record, receiver, colors.mark);
  }
  context.restore();
}

const blocksPane = document.getElementById("blocks"), blocksCanvas = blocksPane.querySelector("canvas");

function drawBlocks() {
  const height = blocksPane.clientHeight, scroll = blocksPane.scrollTop, colors = view.colors;
  blocksPane.querySelector(".spacer").style.height = Math.max(0, view.height + AXIS - height) + "px";
  const s = prepareCanvas(blocksCanvas, blocksPane.clientWidth, height), {context, ratio} = s;
  const from = Math.max(0, rowAt(scroll)), big = [];
  let to = from, looked = 0;
  while (to < view.rows.length && view.rows[to].y - scroll + AXIS < height) to++;
  const pixels = Math.round(plotWidth(s.width / ratio) * ratio);
  busyStrips.begin(pixels, (to - from) * view.shown.length);
  waitStrips.begin(pixels, (to - from) * view.shown.length);
  for (let i = from; i < to; i++) {
    context.fillStyle = colors.stripe;
    context.fillRect(GUTTER * ratio, (view.rows[i].y - scroll + AXIS) * ratio, s.width, view.rows[i].height * ratio);
  }
  drawGrid(s, colors.line, 0);
  for (let i = from; i < to; i++) {
    for (const part of partsOf(view.rows[i])) looked += drawPart(s, part, part.y - scroll + AXIS, part.height, big);
  }
  busyStrips.paint(context, GUTTER * ratio);
  waitStrips.paint(context, GUTTER * ratio);
  drawBig(s, big);
  drawMarks(s, colors);
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, GUTTER * ratio - 1, s.height);
  drawGutter(s, scroll, colors);
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, s.width, AXIS * ratio - 1);
  drawGrid({...s, height: AXIS * ratio}, colors.line, AXIS - 5, colors.soft);
  context.fillStyle = colors.line;
  context.fillRect(0, AXIS * ratio - 1, s.width, 1);
  return {looked, drawn: big.length / 7, rows: to - from};
}
