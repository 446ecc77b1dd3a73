// Draws the blocks. Boxes narrower than a pixel or so are not drawn one by one: their colours are averaged over the
// pixels that they cover. That is what an exact renderer would show, and it costs one addition per box in view. Only
// records in the visible span of visible rows are read.

const MIN_BOX_WIDTH = 1.75; // in pixels; narrower boxes are averaged

class Strips {
  // The boxes that are too narrow to draw: one line of pixels for each part of a row.
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
  // Stores the sums as the next line of pixels, which paintLines() draws at (y, height).
  storeLine(y, height) {
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
  paintLines(context, x) {
    this.context.putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (const [line, y, height] of this.used) context.drawImage(this.canvas, 0, line, this.width, 1, x, y, this.width, height);
  }
}

const busyStrips = new Strips(), waitStrips = new Strips();

// Makes a canvas as large as its place on the screen. The surface and its context count in device pixels.
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

// Round times that are about `distance` pixels apart.
function ticksOf(begin, end, pixels, distance) {
  const raw = (end - begin) / Math.max(1, pixels / distance), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw);
  const ticks = [];
  for (let i = Math.ceil(begin / step); i * step <= end; i++) ticks.push(i * step);
  return {ticks, step};
}

function drawGrid(surface, color, top, ink) {
  const {context, ratio} = surface, cssWidth = surface.width / ratio;
  const {ticks, step} = ticksOf(view.begin, view.end, plotWidth(cssWidth), 95);
  const biggest = Math.max(Math.abs(view.begin), Math.abs(view.end));
  const unit = biggest >= 1e6 ? [1e6, "s"] : biggest >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9)));
  context.fillStyle = color;
  for (const tick of ticks) context.fillRect(Math.round(timeToX(tick, cssWidth) * ratio), top * ratio, 1, surface.height - top * ratio);
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

// Draws the records of one trace in one part of a row. Returns how many records it has read.
function drawPart(surface, part, y, height, boxes) {
  const {ratio} = surface, {trace, blocks} = part, {begin, end, state} = trace.record;
  const scale = plotWidth(surface.width / ratio) * ratio / (view.end - view.begin);
  const matches = view.matches && view.matches[trace.index], single = blocks.length === 1, share = 1 / Math.max(1, part.blocks.length);
  let examined = 0;
  busyStrips.clear();
  waitStrips.clear();
  for (const block of blocks) {
    const first = trace.block.record[block], last = trace.block.record[block + 1];
    const from = Math.max(first, upperBound(begin, view.begin, first, last) - 1), to = upperBound(begin, view.end, from, last);
    const stride = Math.max(1, Math.floor((to - from) / (16 * busyStrips.width))); // a sample is enough where pixels cannot tell more
    for (let i = from, step = 1; i < to; i += step) {
      if (stride > 1) step = 1 + ((i * 2654435761 >>> 8) % (2 * stride - 1));
      const x0 = (begin[i] - view.begin) * scale, x1 = (end[i] - view.begin) * scale;
      examined++;
      if (x1 < 0) continue;
      const faded = matches && !matches[i];
      if (single && x1 - x0 >= MIN_BOX_WIDTH) { boxes.push({trace, record: i, x0, x1, faded, y, height}); continue; }
      const strip = state[i] === 0 ? busyStrips : waitStrips;
      strip.add(x0, x1, view.rgb[trace.kind[i]], (faded ? 0.13 : 1) * share * (stride > 1 ? stride : 1));
    }
  }
  busyStrips.storeLine(y * ratio, height * ratio);
  waitStrips.storeLine((y + waitTop(height)) * ratio, waitHeight(height) * ratio);
  return examined;
}

function waitHeight(height) { return Math.max(3, Math.round(height * 0.3)); }
function waitTop(height) { return Math.round((height - waitHeight(height)) / 2); }

function drawBoxes(surface, boxes) {
  const {context, ratio} = surface, left = GUTTER * ratio, right = surface.width - rightGap() * ratio;
  context.save();
  context.beginPath();
  context.rect(left, 0, right - left, surface.height);
  context.clip();
  context.textBaseline = "middle";
  for (const {trace, record, faded, y, height, x0: begin, x1: end} of boxes) {
    const x0 = Math.max(begin + left, left - 9), x1 = Math.min(end + left, right + 9), busy = trace.record.state[record] === 0;
    const gap = x1 - x0 > 6 * ratio ? ratio : x1 - x0 > 3 ? 0.5 : 0;
    context.globalAlpha = faded ? 0.13 : 1;
    context.fillStyle = view.paints[trace.kind[record]];
    if (busy) context.fillRect(x0, y * ratio, x1 - x0 - gap, height * ratio);
    else context.fillRect(x0, (y + waitTop(height)) * ratio, x1 - x0 - gap, waitHeight(height) * ratio);
    if (busy && x1 - x0 > 30 * ratio && height >= 11) drawBoxText(surface, trace, record, x0, x1, y, height);
  }
  context.restore();
}

function drawBoxText(surface, trace, record, x0, x1, y, height) {
  const {context, ratio} = surface, step = trace.record.step[record], op = page.ops[trace.step.op[step]];
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

function drawGutter(surface, scroll, colors) {
  const {context, ratio} = surface, bottom = surface.height / ratio;
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
    if (row.first || i === Math.max(0, rowAt(scroll))) { // the name of a rank stays in view as long as one of its rows does
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

function drawMessage(surface, trace, from, to, color) {
  const a = boxRect(trace, from), b = boxRect(trace, to), {context, ratio} = surface;
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

function drawMarks(surface, colors) {
  const {context, ratio} = surface;
  context.save();
  context.beginPath();
  context.rect(GUTTER * ratio, AXIS * ratio, surface.width, surface.height);
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
    const {trace, record} = chosen, sender = trace.record.message[record], receiver = trace.record.state[record] === 0 ? receiverOf(trace, record) : -1;
    if (sender >= 0) drawMessage(surface, trace, sender, record, colors.mark);
    if (receiver >= 0) drawMessage(surface, trace, record, receiver, colors.mark);
  }
  context.restore();
}

const blocksPane = document.getElementById("blocks"), blocksCanvas = blocksPane.querySelector("canvas");

function drawBlocks() {
  const height = blocksPane.clientHeight, scroll = blocksPane.scrollTop, colors = view.colors;
  blocksPane.querySelector(".spacer").style.height = Math.max(0, view.height + AXIS - height) + "px";
  const surface = prepareCanvas(blocksCanvas, blocksPane.clientWidth, height), {context, ratio} = surface;
  const from = Math.max(0, rowAt(scroll)), boxes = [];
  let to = from, examined = 0;
  while (to < view.rows.length && view.rows[to].y - scroll + AXIS < height) to++;
  const pixels = Math.round(plotWidth(surface.width / ratio) * ratio);
  busyStrips.begin(pixels, (to - from) * view.shown.length);
  waitStrips.begin(pixels, (to - from) * view.shown.length);
  for (let i = from; i < to; i++) {
    context.fillStyle = colors.stripe;
    context.fillRect(GUTTER * ratio, (view.rows[i].y - scroll + AXIS) * ratio, surface.width, view.rows[i].height * ratio);
  }
  drawGrid(surface, colors.line, 0);
  for (let i = from; i < to; i++) {
    for (const part of partsOf(view.rows[i])) examined += drawPart(surface, part, part.y - scroll + AXIS, part.height, boxes);
  }
  busyStrips.paintLines(context, GUTTER * ratio);
  waitStrips.paintLines(context, GUTTER * ratio);
  drawBoxes(surface, boxes);
  drawMarks(surface, colors);
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, GUTTER * ratio - 1, surface.height);
  drawGutter(surface, scroll, colors);
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, surface.width, AXIS * ratio - 1);
  drawGrid({...surface, height: AXIS * ratio}, colors.line, AXIS - 5, colors.soft);
  context.fillStyle = colors.line;
  context.fillRect(0, AXIS * ratio - 1, surface.width, 1);
  return {examined, drawn: boxes.length, rows: to - from};
}
