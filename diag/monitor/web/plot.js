// The plots: one View for each, drawn by uPlot from the state in app.js.
"use strict";

const PLOTS = [
  { id: "throughput", title: "Throughput", unit: "bit/s", wide: true, about: "Of each port, by its own counters.", none: "No port has been counted yet.", kinds: ["received", "sent"] },
  { id: "pause", title: "PFC pause, share of time", unit: "%", about: "Received: the peer stops us. Sent: we cannot drain.", none: "The drivers here do not count time in pause, or no priority was ever paused.", kinds: [] },
  { id: "pfc", title: "PFC frames", unit: "frames/s", about: "By priority and direction.", none: "The drivers here do not count PFC frames, or there was never one.", kinds: [] },
  { id: "ecn", title: "ECN marks", unit: "packets/s", about: "Packets that arrived with congestion experienced.", none: "The drivers here do not count ECN marks.", kinds: [] },
  { id: "cnp", title: "Congestion notifications", unit: "packets/s", about: "Sent as receiver; handled and ignored as sender.", none: "The drivers here do not count CNPs.", kinds: ["handled", "sent", "ignored"] },
  { id: "retransmit", title: "Retransmissions", unit: "events/s", about: "Why the requester sent again: NAKs for a gap, timeouts.", none: "The drivers here do not count retransmissions.", kinds: ["NAK", "timeout", "implied NAK"] },
  { id: "outoforder", title: "Out of sequence", unit: "packets/s", about: "Requests that arrived after a gap (responder).", none: "The drivers here do not count order.", kinds: [] },
];
const MAX_LINES = 10; // lines of one plot

// Okabe and Ito's colours, which all kinds of eyes tell apart, darker on white so that a
// line stands out from its ground by 3 to 1 (WCAG 2.1 §1.4.11).
const LIGHT = ["#0072b2", "#d55e00", "#00805f", "#b04f8c", "#9a6a00", "#2f93c9", "#3d4450"];
const DARK = ["#56b4e9", "#ff9a4d", "#3fcf9f", "#e79ac8", "#f0e442", "#8fb8ff", "#d3d8df"];
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [5, 2, 5, 6]];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 1200, 3600, 7200, 14400, 43200, 86400]; // seconds between times

const dark = matchMedia("(prefers-color-scheme: dark)");

// place is where a name stands in a list that only grows: what has a place keeps it, and
// with it its colour or its dashes, whatever comes later.
function place(list, name) {
  const i = list.indexOf(name);
  return i >= 0 ? i : list.push(name) - 1;
}

class View {
  constructor(plot) {
    this.plot = plot;
    this.off = new Set(); // lines that the viewer has put off
    this.ids = "";
    this.kinds = [...plot.kinds];
    this.legend = make("ul", { class: "legend" });
    this.chart = make("div", { class: "chart" });
    this.time = make("time", { class: "at" });
    this.root = make("section", { class: "plot" + (plot.wide ? " wide" : ""), id: "plot-" + plot.id, "aria-label": plot.title },
      make("h2", {}, plot.title, make("span", { class: "unit", text: plot.unit }), this.time),
      make("p", { class: "about", text: plot.about }), this.chart, this.legend);
    this.wide = plot.wide;
    this.chart.addEventListener("keydown", (e) => this.key(e));
    this.chart.addEventListener("blur", () => point(null));
  }

  forget() {
    this.off.clear();
    this.ids = "";
    this.kinds = [...this.plot.kinds];
    if (this.u) this.u.destroy();
    this.u = null;
  }

  lines() {
    const device = $("device").value;
    let all = [...state.series.values()].filter((s) => s.plot === this.plot.id && (!device || s.device === device));
    const peak = (s) => s.values.reduce((m, v) => Math.max(m, v || 0), 0);
    this.left = 0;
    if (all.length > MAX_LINES) {
      const top = new Set([...all].sort((a, b) => peak(b) - peak(a)).slice(0, MAX_LINES));
      this.left = all.length - MAX_LINES;
      all = all.filter((s) => top.has(s));
    }
    return all.sort((a, b) => natural(a.device + a.line, b.device + b.line));
  }

  // look is the stroke of a line: a device has one colour in all plots and its lines have
  // different dashes; where there is only one device its lines have colours.
  look(s) {
    const colours = dark.matches ? DARK : LIGHT;
    const kind = place(this.kinds, s.line.replace(/ by .*/, ""));
    const [c, d] = state.devices.length > 1 ? [place(state.devices, s.device), kind] : [kind, 0];
    return { stroke: colours[c % colours.length], dash: DASHES[(d + Math.floor(c / colours.length)) % DASHES.length] };
  }

  draw() {
    const all = this.lines();
    const ids = all.map((s) => s.device + "\n" + s.line).join("\n\n") + "|" + [dark.matches, this.left, !!state.last, state.devices.length > 1, state.times.length > 0].join("|");
    if (ids !== this.ids) {
      this.ids = ids;
      this.rebuild(all);
    }
    if (!all.length) return;
    this.all = all;
    this.u.setData([state.times, ...all.map((s) => s.values)], false);
    const end = state.times.length ? state.times[state.times.length - 1] : Date.now() / 1000;
    const start = state.times.length ? state.times[0] : end - 1;
    const span = Number($("span").value);
    const live = state.last && state.last.origin === "live";
    let range = { min: Math.max(end - span, live ? Math.min(start, end - 60) : start), max: end };
    if (start === end && !live) range = { min: end - 1, max: end + 1 }; // one point stands in the middle
    this.u.batch(() => this.u.setScale("x", range));
    this.tell();
    const text = this.plot.title + ": " + all.map((s) => name(s) + " " + show(lastOf(s.values), this.plot.unit)).join(", ");
    if (this.chart.getAttribute("aria-label") !== text) this.chart.setAttribute("aria-label", text);
  }

  // tell writes the values at the cursor, or the newest, into the legend.
  tell() {
    if (!this.u || !this.all || this.values.length !== this.all.length) return;
    const at = this.u.cursor.idx;
    const there = at != null && this.u.cursor.left >= 0;
    this.all.forEach((s, i) => { this.values[i].textContent = show(there && at < s.values.length ? s.values[at] : lastOf(s.values), this.plot.unit); });
    this.time.textContent = there && state.times[at] ? clock(state.times[at] * 1000) : "";
  }

  // key moves the cursor of a plot that has the keyboard's focus.
  key(e) {
    if (!this.u || e.altKey || e.ctrlKey || e.metaKey) return;
    const u = this.u, n = state.times.length;
    const from = u.valToIdx(u.scales.x.min), now = u.cursor.left >= 0 && u.cursor.idx != null ? u.cursor.idx : n;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 20, PageDown: now + 20, Home: from, End: n - 1, Escape: -1 }[e.key];
    if (to === undefined || !n) return;
    e.preventDefault();
    point(e.key === "Escape" ? null : state.times[Math.max(from, Math.min(to, n - 1))]);
  }

  rebuild(all) {
    if (this.u) this.u.destroy();
    this.u = null;
    this.legend.replaceChildren();
    this.time.textContent = "";
    this.chart.classList.toggle("none", !all.length);
    this.root.classList.toggle("wide", !!this.wide && all.length > 0);
    if (!all.length) {
      for (const a of ["role", "aria-label", "aria-description", "tabindex"]) this.chart.removeAttribute(a);
      const rates = state.times.length > 0;
      this.chart.textContent = !state.last || state.last.origin === "live" && !rates ? "waiting for the first values …" : rates ? this.plot.none : "There are no rates in this recording.";
      return;
    }
    this.chart.textContent = "";
    this.chart.setAttribute("role", "img");
    this.chart.setAttribute("tabindex", "0");
    this.chart.setAttribute("aria-description", "Arrow keys move through time; the values are in the legend.");
    const look = all.map((s) => this.look(s));
    const axis = { stroke: css("--soft"), font: "11px system-ui, sans-serif", grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
    const unit = this.plot.unit;
    this.u = new uPlot({
      width: Math.max(this.chart.clientWidth, 120), height: this.height(),
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: "time" }, points: { size: 7 } },
      scales: {
        x: { time: true },
        y: { range: (_, lo, hi) => [0, unit === "%" ? Math.min(1, Math.max(hi * 1.15, 0.01)) : Math.max((hi || 0) * 1.15, unit === "bit/s" ? 1000 : 1)] },
      },
      axes: [
        { ...axis, space: (_, i, min, max) => max - min > 180 ? 46 : 68, incrs: (_, i, min, max) => STEPS.filter((n) => n >= 60 || max - min <= 180), size: 26, values: (_, v, i, space, step) => v.map((t) => clock(t * 1000, step >= 60)) },
        { ...axis, size: 58, space: 34, values: (_, v) => v.map((x) => tick(x, unit)) },
      ],
      series: [{}, ...all.map((s, i) => ({ label: name(s), stroke: look[i].stroke, dash: look[i].dash, width: 1.75, points: { show: true, size: 6, fill: look[i].stroke, filter: alone }, spanGaps: false, show: !this.off.has(name(s)) }))],
      hooks: { draw: [marks], setCursor: [() => this.tell()] },
    }, [[], ...all.map(() => [])], this.chart);
    this.values = all.map((s, i) => {
      const value = make("b");
      const on = !this.off.has(name(s));
      const b = make("button", { type: "button", "aria-pressed": String(on), title: "show or hide this line" }, swatch(look[i]), make("span", { text: name(s) }), value);
      b.addEventListener("click", () => {
        const now = b.getAttribute("aria-pressed") !== "true";
        b.setAttribute("aria-pressed", String(now));
        if (now) this.off.delete(name(s)); else this.off.add(name(s));
        this.u.setSeries(i + 1, { show: now });
      });
      for (const [what, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) {
        b.addEventListener(what, () => { if (this.u) this.u.setSeries(on ? i + 1 : null, { focus: on }); });
      }
      this.legend.append(make("li", {}, b));
      return value;
    });
    this.all = all;
    if (this.left) this.legend.append(make("li", { class: "more", text: `and ${this.left} more: choose a device` }));
  }

  height() { return this.wide && innerWidth > 900 ? 230 : 180; }

  resize() {
    if (this.u) this.u.setSize({ width: Math.max(this.chart.clientWidth, 120), height: this.height() });
  }
}

// point puts the cursors of all plots at a time, null for none.
function point(time) {
  for (const { view: { u } } of PLOTS) if (u) u.setCursor(time == null ? { left: -10, top: -10 } : { left: u.valToPos(time, "x"), top: 1 });
}

// alone are the values that no line leads to or from: they are drawn as points, so that a
// recording of two instants, which is one rate, shows it.
function alone(u, i) {
  const v = u.data[i], all = [];
  for (let k = 0; k < v.length; k++) if (v[k] != null && v[k - 1] == null && v[k + 1] == null) all.push(k);
  return all;
}

function lastOf(v) { return v.length ? v[v.length - 1] : null; }

// name is that of a line: without the device where only one is shown.
function name(s) { return ($("device").value || state.devices.length < 2 ? "" : s.device + " ") + s.line; }

function swatch(l) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [k, v] of [["width", 22], ["height", 8], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [k, v] of [["x1", 0], ["x2", 22], ["y1", 4], ["y2", 4], ["stroke", l.stroke], ["stroke-width", 3], ["stroke-dasharray", l.dash.map((d) => d * 0.7).join(" ")]]) line.setAttribute(k, v);
  svg.append(line);
  return svg;
}

// marks draws when findings came.
function marks(u) {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${10 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left"; // the axes leave another one
  const near = 14 * ratio;
  const drawn = []; // places with the rules that fired there
  for (const e of state.events) {
    const x = u.valToPos(e.t / 1000, "x", true);
    if (e.gone || x < bbox.left || x > bbox.left + bbox.width) continue;
    let place = drawn.findLast((d) => Math.abs(d.x - x) < near);
    if (!place) {
      if (drawn.some((d) => d.rules.has(e.rule) && x - d.x < 8 * near)) continue; // it comes and goes
      drawn.push(place = { x, rules: new Set(), fail: false });
    }
    place.rules.add(e.rule);
    place.fail = place.fail || e.status === "FAIL";
  }
  let free = -1e9;
  for (const d of drawn) {
    ctx.strokeStyle = ctx.fillStyle = css(d.fail ? "--fail" : "--warn");
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(d.x, bbox.top);
    ctx.lineTo(d.x, bbox.top + bbox.height);
    ctx.stroke();
    const rules = [...d.rules];
    const text = rules.slice(0, 3).join(" ") + (rules.length > 3 ? ` +${rules.length - 3}` : "");
    const wide = ctx.measureText(text).width;
    const left = d.x + wide + 4 * ratio > bbox.left + bbox.width ? d.x - wide - 3 * ratio : d.x + 3 * ratio;
    if (left < free) continue; // no room for its name
    free = left + wide + 6 * ratio;
    ctx.fillText(text, left, bbox.top - 3 * ratio);
  }
  ctx.restore();
}
