// Runs inside a page of `polyccl view`: acts as a user would, by events, and writes what came of it into the page.
// Everything is synchronous, so the browser may print the document right after it has loaded.
(function () {
  const results = {}, {page, view} = window.polyccl, blocks = document.getElementById("blocks"), canvas = blocks.querySelector("canvas");
  const wanted = JSON.parse(document.getElementById("wanted").textContent);

  function find(rank, tb, step, batch, state) {
    const trace = view.shown[0];
    for (let i = 0; i < trace.kind.length; i++) {
      const s = trace.record.step[i], block = trace.step.block[s];
      if (trace.block.rank[block] === rank && trace.block.tb[block] === tb && trace.step.number[s] === step &&
          trace.record.batch[i] === batch && trace.record.state[i] === state) return i;
    }
    return -1;
  }
  const key = name => document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  const box = record => {
    window.polyccl.redraw();
    const r = window.polyccl.boxRect(view.shown[0], record), at = blocks.getBoundingClientRect();
    return {x: at.left + r.x + r.width / 2, y: at.top + r.y + r.height / 2, width: r.width, inX: r.x + r.width * 0.94, inY: r.y + 2};
  };
  const pointer = (type, x, y, buttons) => blocks.dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, button: 0, buttons, pointerId: 1, bubbles: true, cancelable: true}));
  const text = id => document.getElementById(id).innerText.replace(/\s+/g, " ").trim();
  const pixel = (x, y) => [...canvas.getContext("2d").getImageData(Math.round(x * devicePixelRatio), Math.round(y * devicePixelRatio), 1, 1).data].slice(0, 3);
  const here = () => { const a = view.selected, s = a && a.trace.record.step[a.record]; return a ? [a.trace.block.rank[a.trace.step.block[s]], a.trace.block.tb[a.trace.step.block[s]], a.trace.step.number[s], a.trace.record.batch[a.record], a.trace.record.state[a.record]] : null; };

  try {
    results.title = text("title");
    results.images = document.images.length + document.querySelectorAll("h1 *, #facts b, #facts img").length;
    results.attacked = window.attacked === true;
    results.rows = view.rows.length;
    if (view.collapsed.size > 0) key("x");
    results.rowsExpanded = view.rows.length;

    // hover: the words are those of the box, the colour is that of its op
    const target = find(...wanted.box, 0);
    window.polyccl.setSpan(view.shown[0].record.begin[target] - 3, view.shown[0].record.begin[target] + 5);
    let at = box(target);
    blocks.scrollTop = 0;
    if (at.y > blocks.getBoundingClientRect().bottom - 20) { blocks.scrollTop = at.y - 300; at = box(target); }
    pointer("pointermove", at.x, at.y, 0);
    results.hover = text("tip");
    results.tipShown = !document.getElementById("tip").hidden;
    const part = box(target);
    pointer("pointermove", 5, 5, 0);
    window.polyccl.redraw();
    results.pixel = pixel(part.inX, part.inY);
    results.paint = page.ops.find(o => o.name === wanted.op).light;
    const waiting = find(...wanted.box, 1) >= 0 ? find(...wanted.box, 1) : find(...wanted.box, 2) >= 0 ? find(...wanted.box, 2) : find(...wanted.box, 3);
    const w = box(waiting);
    pointer("pointermove", w.x, w.y, 0);
    results.waitHover = text("tip");

    // wheel: the time under the pointer stays where it is
    const span = view.end - view.begin, rect = blocks.getBoundingClientRect();
    const timeAt = x => view.begin + (x - rect.left - 118) / (rect.width - 132) * (view.end - view.begin);
    const before = timeAt(at.x);
    blocks.dispatchEvent(new WheelEvent("wheel", {clientX: at.x, clientY: at.y, deltaY: -240, bubbles: true, cancelable: true}));
    results.zoom = (view.end - view.begin) / span;
    results.zoomDrift = Math.abs(timeAt(at.x) - before) / span;

    // drag: what is under the pointer follows it
    const held = timeAt(at.x);
    pointer("pointerdown", at.x, at.y, 1);
    pointer("pointermove", at.x - 150, at.y, 1);
    pointer("pointerup", at.x - 150, at.y, 0);
    results.dragDrift = Math.abs(timeAt(at.x - 150) - held) / (view.end - view.begin);
    results.selectedByDrag = view.selected !== null;

    // click and keys
    at = box(target);
    pointer("pointerdown", at.x, at.y, 1);
    pointer("pointerup", at.x, at.y, 0);
    results.selected = here();
    results.details = text("details");
    results.said = text("live");
    key("ArrowRight");
    results.right = here();
    key("ArrowLeft"); key("m");
    results.sender = here();
    key("Enter");
    const zoomed = view.shown[0].record, chosen = view.selected.record;
    results.entered = (zoomed.end[chosen] - zoomed.begin[chosen]) / (view.end - view.begin);
    key("0");
    results.fit = [view.begin, view.end, view.shown[0].duration];
    key("Escape");
    results.afterEscape = [view.selected === null, document.getElementById("details").hidden];

    // search
    const field = document.getElementById("search");
    results.searches = wanted.searches.map(words => {
      field.value = words;
      field.dispatchEvent(new Event("input", {bubbles: true}));
      return view.matchCount;
    });
    results.found = text("matches");
    key("n");
    results.firstMatch = here();
    key("Escape");
    results.cleared = view.matches === null;

    // collapse one rank by its name, then all
    window.polyccl.redraw();
    blocks.scrollTop = 0;
    window.polyccl.redraw();
    pointer("pointerdown", rect.left + 30, rect.top + 34, 1);
    pointer("pointerup", rect.left + 30, rect.top + 34, 0);
    results.collapsedOne = [view.collapsed.size, view.rows.length];
    key("x");
    results.collapsedAll = view.rows.length;
    key("x");
    const light = document.documentElement.dataset.theme, ground = getComputedStyle(document.body).backgroundColor;
    document.getElementById("theme").click();
    results.theme = [light, document.documentElement.dataset.theme, ground !== getComputedStyle(document.body).backgroundColor];
    document.getElementById("theme").click();
    results.links = view.shown[0].busyLinks.map(link => [link.name, link.share]);

    if (view.shown[0].busyLinks.length > 0) { // over a link: its name and the rate at that time
      const links = document.getElementById("links"), r = links.getBoundingClientRect(), time = wanted.linkTime;
      window.polyccl.fitAll();
      window.polyccl.redraw();
      const x = r.left + 118 + (time - view.begin) / (view.end - view.begin) * (r.width - 132);
      links.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: r.top + 20, bubbles: true}));
      results.linkHover = text("tip");
    }

    // how long a redraw takes, rasterisation included, from everything to a few boxes
    results.redraw = [];
    key("x"); // first with every box in sight: a row per rank
    for (let zoom = 1; zoom >= 1e-4; zoom /= zoom === 1 && results.redraw.length === 1 ? 1 : 10) {
      if (results.redraw.length === 1) key("x");
      const whole = view.shown[0].duration;
      window.polyccl.setSpan(0.4 * whole, (0.4 + zoom) * whole);
      const times = [];
      let stats;
      for (let i = 0; i < 5; i++) {
        const start = performance.now();
        stats = window.polyccl.redraw();
        pixel(1, 1);
        times.push(performance.now() - start);
      }
      results.redraw.push({zoom, ms: times.sort((a, b) => a - b)[2], examined: stats.examined, drawn: stats.drawn, rows: stats.rows});
    }
    key("0");
    if (wanted.show) { window.polyccl.setSpan(...wanted.show); window.polyccl.select(view.shown[0], target); }
    if (wanted.dark) document.getElementById("theme").click();
    window.polyccl.redraw();
  } catch (error) {
    results.error = `${error.message} ${error.stack}`;
  }
  const out = document.createElement("script");
  out.type = "application/json";
  out.id = "results";
  out.textContent = JSON.stringify(results).replace(/</g, "\\u003c");
  document.body.append(out);
})();
