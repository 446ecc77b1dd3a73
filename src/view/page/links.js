// Draws the utilisation of links over time, and the overview at the top.

const linksPane = document.getElementById("links"), linksCanvas = linksPane.querySelector("canvas");
const LINK_ROW = 38, LINK_AREA = 18;
const overview = document.getElementById("overview");

// Sets trace.busyLinks: the links that carry data, the busiest first, with their mean rate over the whole time.
function prepareLinks(trace) {
  const {time, rate} = trace.sample;
  trace.busyLinks = trace.links.map((link, index) => {
    let sum = 0, peak = 0;
    for (let i = link.sample; i < link.sample + link.samples; i++) {
      const until = i + 1 < link.sample + link.samples ? time[i + 1] : trace.duration;
      sum += rate[i] * Math.max(0, until - time[i]);
      peak = Math.max(peak, rate[i]);
    }
    const mean = trace.duration > 0 ? sum / trace.duration : 0;
    const scale = link.bandwidth > 0 ? Math.max(link.bandwidth, peak) : peak;
    return {...link, index, mean, peak, scale, share: scale > 0 ? mean / scale : 0};
  }).filter(link => link.peak > 0).sort((a, b) => b.share - a.share || a.index - b.index);
}

function linksTrace() { return view.shown.find(trace => trace.busyLinks.length > 0); }

function drawLink(surface, trace, link, y) {
  const {context, ratio} = surface, {time, rate} = trace.sample, width = Math.round(plotWidth(surface.width / ratio) * ratio);
  const sums = new Float32Array(width), scale = width / (view.end - view.begin), last = link.sample + link.samples;
  for (let i = Math.max(link.sample, upperBound(time, view.begin, link.sample, last) - 1); i < last && time[i] < view.end; i++) {
    const x0 = Math.max(0, (time[i] - view.begin) * scale), x1 = Math.min(width, ((i + 1 < last ? time[i + 1] : trace.duration) - view.begin) * scale);
    for (let p = Math.floor(x0); p < x1; p++) sums[p] += rate[i] * (Math.min(x1, p + 1) - Math.max(x0, p));
  }
  const base = (y + LINK_ROW - 5) * ratio, full = LINK_AREA * ratio, left = GUTTER * ratio;
  context.fillStyle = view.colors.stripe;
  context.fillRect(left, base - full, width, full);
  context.fillStyle = view.colors.accent;
  context.beginPath();
  context.moveTo(left, base);
  for (let p = 0; p < width; p++) {
    const top = base - full * Math.min(1, sums[p] / link.scale);
    context.lineTo(left + p, top);
    context.lineTo(left + p + 1, top);
  }
  context.lineTo(left + width, base);
  context.globalAlpha = 0.75;
  context.fill();
  context.globalAlpha = 1;
  const middle = base - full / 2;
  context.textBaseline = "middle";
  context.font = `${11 * ratio}px ${FONT}`;
  context.fillStyle = view.colors.soft;
  context.fillText(link.name, left, base - full - 7 * ratio);
  context.fillStyle = view.colors.ink;
  context.textAlign = "right";
  context.font = `600 ${12 * ratio}px ${FONT}`;
  context.fillText(`${(100 * link.share).toFixed(0)} %`, (GUTTER - 62) * ratio, middle);
  context.font = `${11 * ratio}px ${FONT}`;
  context.fillStyle = view.colors.soft;
  context.fillText(`${link.scale >= 100 ? link.scale.toFixed(0) : link.scale.toPrecision(3)} GB/s`, (GUTTER - 6) * ratio, middle);
  context.textAlign = "left";
}

function drawLinks() {
  const trace = linksTrace(), pane = document.getElementById("links-pane");
  pane.hidden = !trace;
  if (!trace || linksPane.hidden) return;
  const whole = trace.busyLinks.length * LINK_ROW + 4;
  linksPane.style.height = Math.min(whole, Math.floor(window.innerHeight * 0.26)) + "px";
  const height = linksPane.clientHeight, scroll = linksPane.scrollTop;
  linksPane.querySelector(".spacer").style.height = Math.max(0, whole - height) + "px";
  const surface = prepareCanvas(linksCanvas, linksPane.clientWidth, height);
  for (let i = Math.floor(scroll / LINK_ROW); i < trace.busyLinks.length && i * LINK_ROW - scroll < height; i++) {
    drawLink(surface, trace, trace.busyLinks[i], i * LINK_ROW - scroll);
  }
}

// What the tip says about the link at (x, y) and its rate at that time: [text, ...], or null.
function linkAt(x, y) {
  const trace = linksTrace(), index = Math.floor((y + linksPane.scrollTop) / LINK_ROW), time = xToTime(x, linksPane.clientWidth);
  if (!trace || index < 0 || index >= trace.busyLinks.length) return null;
  const link = trace.busyLinks[index], last = link.sample + link.samples;
  const i = upperBound(trace.sample.time, time, link.sample, last) - 1, rate = i >= link.sample && time <= trace.duration ? trace.sample.rate[i] : 0;
  const share = link.scale > 0 ? ` of ${link.scale.toPrecision(3)}: ${(100 * rate / link.scale).toFixed(0)} %` : "";
  return x < GUTTER ? [link.name, `mean ${link.mean.toPrecision(3)} GB/s, max ${link.peak.toPrecision(3)} GB/s`]
      : [link.name, `${rate.toPrecision(3)} GB/s${share}`, `at ${formatTime(time, (view.end - view.begin) / 1000)}`];
}

// The mean colour of all blocks for each pixel, summed apart for busy and waiting. It is made anew when the size, the
// theme or the trace changes.
function overviewImage(width) {
  const key = [width, view.dark, view.shown.map(t => t.index).join()].join("/");
  if (overviewImage.key === key) return overviewImage.sums;
  const trace = view.shown[0], {begin, end, state} = trace.record, busy = new Float32Array(width * 4), wait = new Float32Array(width * 4);
  const scale = width / spanOf(), share = 1 / Math.max(1, trace.block.rank.length);
  for (let i = 0; i < state.length; i++) {
    const sums = state[i] === 0 ? busy : wait, rgb = view.rgb[trace.kind[i]], x0 = begin[i] * scale, x1 = Math.min(width, end[i] * scale);
    for (let p = Math.floor(x0); p < x1; p++) {
      const cover = (Math.min(x1, p + 1) - Math.max(x0, p)) * share;
      for (let c = 0; c < 3; c++) sums[p * 4 + c] += rgb[c] * cover;
      sums[p * 4 + 3] += cover;
    }
  }
  overviewImage.key = key;
  return overviewImage.sums = {busy, wait};
}

function drawOverview() {
  const surface = prepareCanvas(overview, overview.clientWidth, 46), {context, ratio} = surface;
  const left = GUTTER * ratio, width = Math.round(plotWidth(surface.width / ratio) * ratio), {busy, wait} = overviewImage(width);
  const base = surface.height - 5 * ratio, full = surface.height - 10 * ratio;
  context.fillStyle = view.colors.stripe;
  context.fillRect(left, base - full, width, full);
  for (let p = 0; p < width; p++) {
    let top = base;
    for (const sums of [busy, wait]) {
      const cover = sums[p * 4 + 3], height = Math.min(full, cover * full);
      if (height <= 0) continue;
      context.fillStyle = `rgb(${sums[p * 4] / cover | 0},${sums[p * 4 + 1] / cover | 0},${sums[p * 4 + 2] / cover | 0})`;
      context.globalAlpha = sums === wait ? 0.45 : 1;
      context.fillRect(left + p, top - height, 1, height);
      top -= height;
    }
  }
  context.globalAlpha = 1;
  const x0 = Math.max(left, left + view.begin / spanOf() * width), x1 = Math.min(left + width, left + view.end / spanOf() * width);
  context.fillStyle = view.colors.ground;
  context.globalAlpha = 0.62;
  context.fillRect(left, base - full, x0 - left, full);
  context.fillRect(x1, base - full, left + width - x1, full);
  context.globalAlpha = 1;
  context.strokeStyle = view.colors.mark;
  context.lineWidth = 1.5 * ratio;
  context.strokeRect(x0, base - full, Math.max(3 * ratio, x1 - x0), full);
  context.fillStyle = view.colors.soft;
  context.font = `${11 * ratio}px ${FONT}`;
  context.textBaseline = "middle";
  context.fillText("all ranks", 10 * ratio, surface.height / 2);
}
