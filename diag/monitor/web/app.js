// The page: asks /api/data once a second for what is new, keeps ten minutes, draws. It
// loads nothing but its own files and sends nothing but these questions.
"use strict";

const PLOTS = [
  { id: "throughput", title: "Throughput", unit: "bit/s", wide: true, about: "Of each port, by its own counters.", none: "No port has been counted yet." },
  { id: "pause", title: "PFC pause, share of time", unit: "%", about: "Received: the peer stops us. Sent: we cannot drain.", none: "The drivers here do not count time in pause, or no priority was ever paused." },
  { id: "pfc", title: "PFC frames", unit: "frames/s", about: "By priority and direction.", none: "The drivers here do not count PFC frames, or there was never one." },
  { id: "ecn", title: "ECN marks", unit: "packets/s", about: "Packets that arrived with congestion experienced.", none: "The drivers here do not count ECN marks." },
  { id: "cnp", title: "Congestion notifications", unit: "packets/s", about: "Sent as receiver; handled and ignored as sender.", none: "The drivers here do not count CNPs." },
  { id: "retransmit", title: "Retransmissions", unit: "events/s", about: "Why the requester sent again: NAKs for a gap, timeouts.", none: "The drivers here do not count retransmissions." },
  { id: "outoforder", title: "Out of sequence", unit: "packets/s", about: "Requests that arrived after a gap (responder).", none: "The drivers here do not count order." },
];
const MAX_LINES = 10; // lines of one plot
const KEEP = 600;     // samples
const DASHES = [[], [7, 4], [2, 3]];
// Okabe and Ito's colours, told apart by all kinds of eyes; a second and third round is dashed.
const LIGHT = ["#0072b2", "#d55e00", "#00805f", "#b04f8c", "#9a6a00", "#2f93c9"];
const DARK = ["#56b4e9", "#ff9a4d", "#3fcf9f", "#e79ac8", "#f0e442", "#8fb8ff"];

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function make(tag, attrs, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k === "text") e.textContent = v;
    else if (k === "class") e.className = v;
    else e.setAttribute(k, v);
  }
  e.append(...kids);
  return e;
}

// ---- numbers for people

const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function digits(v) { return String(+v.toPrecision(3)); }

function show(v, unit) {
  if (v == null) return "–";
  if (unit === "%") return digits(v * 100) + " %";
  for (const [n, p] of SI) if (v >= n) return digits(v / n) + " " + p + (unit === "bit/s" ? "bit/s" : "");
  return (v === 0 ? "0" : digits(v)) + (unit === "bit/s" ? " bit/s" : "");
}

// tick is shorter: the unit is in the title.
function tick(v, unit) {
  if (v == null) return "";
  if (unit === "%") return +(v * 100).toPrecision(3) + " %";
  for (const [n, p] of SI) if (v >= n) return +(v / n).toPrecision(3) + " " + p;
  return String(+v.toPrecision(3));
}

function clock(ms) { return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }); }

// ---- what is known of the host that is shown

const state = { host: "", seq: 0, times: [], series: new Map(), events: [], last: null, held: false, timer: 0, generation: 0, gone: 0 };

function reset(host) {
  state.host = host;
  state.seq = 0;
  state.times = [];
  state.series = new Map();
  state.events = [];
  state.last = null;
  state.generation++;
  for (const p of PLOTS) p.view.forget();
}

// take joins an answer with what is known.
function take(a) {
  if (a.seq < state.seq || a.times.length >= KEEP) { // the monitor was started anew, or everything is new
    state.times = [];
    state.series = new Map();
  }
  const n = state.times.length;
  state.times.push(...a.times.map((t) => t / 1000));
  for (const s of a.series) {
    const id = s.plot + "\n" + s.device + "\n" + s.line;
    let known = state.series.get(id);
    if (!known) {
      known = { plot: s.plot, device: s.device, line: s.line, values: new Array(n).fill(null) };
      state.series.set(id, known);
    }
    while (known.values.length < n) known.values.push(null);
    known.values.push(...s.values);
  }
  for (const [id, s] of state.series) {
    while (s.values.length < state.times.length) s.values.push(null);
    if (s.values.length > KEEP) s.values.splice(0, s.values.length - KEEP);
    if (s.values.every((v) => v == null)) state.series.delete(id);
  }
  if (state.times.length > KEEP) state.times.splice(0, state.times.length - KEEP);
  state.seq = a.seq;
  state.events = a.events;
  state.last = a;
}

// ---- plots

class View {
  constructor(plot) {
    this.plot = plot;
    this.off = new Set(); // lines that the viewer has put off
    this.ids = "";
    this.legend = make("ul", { class: "legend" });
    this.chart = make("div", { class: "chart" });
    this.root = make("section", { class: "plot" + (plot.wide ? " wide" : ""), id: "plot-" + plot.id, "aria-label": plot.title },
      make("h2", {}, plot.title, make("span", { class: "unit", text: plot.unit })),
      make("p", { class: "about", text: plot.about }), this.chart, this.legend);
    this.wide = plot.wide;
  }

  forget() {
    this.off.clear();
    this.ids = "";
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
    return all.sort((a, b) => (a.device + a.line).localeCompare(b.device + b.line, "en", { numeric: true }));
  }

  draw() {
    const all = this.lines();
    const ids = all.map((s) => s.device + "\n" + s.line).join("\n\n") + "|" + dark.matches + "|" + this.left + "|" + !!state.last;
    if (ids !== this.ids) {
      this.ids = ids;
      this.rebuild(all);
    }
    if (!all.length) return;
    const data = [state.times, ...all.map((s) => s.values)];
    this.u.setData(data, false);
    const end = state.times.length ? state.times[state.times.length - 1] : Date.now() / 1000;
    const start = state.times.length ? state.times[0] : end - 1;
    const span = Number($("span").value);
    const live = state.last && state.last.origin === "live";
    this.u.batch(() => this.u.setScale("x", { min: Math.max(end - span, live ? Math.min(start, end - 60) : start), max: end > start || live ? end : end + 1 }));
    const u = this.u;
    all.forEach((s, i) => {
      const at = u.cursor.idx;
      const v = at != null && at < s.values.length ? s.values[at] : lastOf(s.values);
      this.values[i].textContent = show(v, this.plot.unit);
    });
    this.chart.setAttribute("aria-label", this.plot.title + ": " + all.map((s) => name(s) + " " + show(lastOf(s.values), this.plot.unit)).join(", "));
  }

  rebuild(all) {
    if (this.u) this.u.destroy();
    this.u = null;
    this.legend.replaceChildren();
    this.chart.classList.toggle("none", !all.length);
    this.root.classList.toggle("wide", !!this.wide && all.length > 0);
    if (!all.length) {
      this.chart.removeAttribute("role");
      this.chart.textContent = state.last ? this.plot.none : "waiting for the first values …";
      return;
    }
    this.chart.textContent = "";
    this.chart.setAttribute("role", "img");
    const colours = dark.matches ? DARK : LIGHT;
    const look = all.map((_, i) => ({ stroke: colours[i % colours.length], dash: DASHES[Math.floor(i / colours.length) % DASHES.length] }));
    const axis = { stroke: css("--soft"), font: "11px system-ui, sans-serif", grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
    const unit = this.plot.unit;
    this.u = new uPlot({
      width: Math.max(this.chart.clientWidth, 120), height: this.height(),
      legend: { show: false },
      cursor: { y: false, sync: { key: "time" }, points: { size: 7 } },
      scales: {
        x: { time: true },
        y: { range: (_, lo, hi) => [0, unit === "%" ? Math.min(1, Math.max(hi * 1.15, 0.01)) : Math.max((hi || 0) * 1.15, unit === "bit/s" ? 1000 : 1)] },
      },
      axes: [
        { ...axis, space: 70, size: 26, values: (_, v) => v.map((t) => clock(t * 1000)) },
        { ...axis, size: 58, space: 34, values: (_, v) => v.map((x) => tick(x, unit)) },
      ],
      series: [{}, ...all.map((s, i) => ({ label: name(s), stroke: look[i].stroke, dash: look[i].dash, width: 1.75, points: { show: false }, spanGaps: false, show: !this.off.has(name(s)) }))],
      hooks: { draw: [marks] },
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
      this.legend.append(make("li", {}, b));
      return value;
    });
    if (this.left) this.legend.append(make("li", { class: "more", text: `and ${this.left} more: choose a device` }));
  }

  height() { return this.wide && innerWidth > 900 ? 230 : 180; }

  resize() {
    if (this.u) this.u.setSize({ width: Math.max(this.chart.clientWidth, 120), height: this.height() });
  }
}

function lastOf(v) { return v.length ? v[v.length - 1] : null; }

// name is that of a line: without the device where only one is shown.
function name(s) { return ($("device").value || devices().size < 2 ? "" : s.device + " ") + s.line; }

function devices() { return new Set([...state.series.values()].map((s) => s.device)); }

function swatch(l) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [k, v] of [["width", 18], ["height", 8], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [k, v] of [["x1", 0], ["x2", 18], ["y1", 4], ["y2", 4], ["stroke", l.stroke], ["stroke-width", 3], ["stroke-dasharray", l.dash.map((d) => d * 0.7).join(" ")]]) line.setAttribute(k, v);
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

// ---- findings

let shown = ""; // the findings as they are on the page

function findings(a) {
  const counts = { FAIL: 0, WARN: 0, INFO: 0 };
  for (const f of a.findings) counts[f.status]++;
  $("verdict").textContent = !a.judged ? "The doctor has not looked yet."
    : (a.findings.length ? `${counts.FAIL} to mend, ${counts.WARN} to look at, ${counts.INFO} to know` : "Nothing found") +
      `; ${a.passed} checks passed, ${a.skipped} could not be judged.` +
      (a.window_seconds ? ` Over ${+a.window_seconds.toPrecision(3)} s until ${clock(a.judged)}.` : " One look so far.");
  const text = JSON.stringify([a.host, a.findings, a.events]);
  if (text === shown) return;
  shown = text;
  const open = new Set([...document.querySelectorAll("#list details[open]")].map((d) => d.dataset.key));
  const focus = document.activeElement && document.activeElement.closest ? document.activeElement.closest("#list details") : null;
  const focused = focus && focus.dataset.key;
  $("list").replaceChildren(...a.findings.map((f) => finding(f, open)));
  if (focused) for (const d of document.querySelectorAll("#list details")) if (d.dataset.key === focused) d.querySelector("summary").focus();
  $("events").replaceChildren(...(a.events.length ? a.events.slice(-20).reverse().map((e) => make("li", {},
    make("time", { text: clock(e.t) }), make("span", { text: `${e.rule} ${e.where}: ${e.gone ? "no longer: " : ""}${e.title}` }))) : [make("li", { class: "empty", text: "Nothing yet." })]));
}

function finding(f, open) {
  const key = f.rule + " " + f.where;
  const dl = make("dl", { class: "detail" });
  const add = (what, ...kids) => { if (kids.length) dl.append(make("dt", { text: what }), make("dd", {}, ...kids)); };
  if (f.cause) add("cause", f.cause);
  if (f.why) add("why it matters", f.why);
  if (f.evidence && f.evidence.length) add("evidence", make("pre", { text: f.evidence.map((e) => `${e.where ? e.where + ": " : ""}${e.what} = ${e.value}${e.before ? " (was " + e.before + ")" : ""}`).join("\n") }));
  if (f.fix && f.fix.length) add("what mends it", make("pre", { text: f.fix.join("\n") }));
  if (f.explained_by) add("probably a symptom of", f.explained_by.join(", "));
  if (f.confidence) add("confidence", Math.round(f.confidence * 100) + " %");
  const d = make("details", { "data-key": key }, make("summary", {},
    make("span", { class: "tag " + f.status, text: f.status }), make("b", { text: f.rule + " " }), make("span", { class: "where", text: f.where }), make("span", { class: "title", text: f.title })), dl);
  if (open.has(key)) d.open = true;
  return make("li", { class: f.status }, d);
}

// ---- the round

function say(kind, text) {
  document.querySelector(".dot").className = "dot " + kind;
  if ($("statetext").textContent !== text) $("statetext").textContent = text;
}

function note(text, error) {
  $("note").hidden = !text;
  $("note").textContent = text;
  $("note").className = error ? "error" : "";
}

function choices() {
  const now = $("device").value;
  const names = [...devices()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (names.join("\n") === $("device").dataset.names) return;
  $("device").dataset.names = names.join("\n");
  $("device").replaceChildren(make("option", { value: "", text: "all" }), ...names.map((n) => make("option", { value: n, text: n })));
  $("device").value = names.includes(now) ? now : "";
}

function render() {
  const a = state.last;
  if (!a) return;
  choices();
  for (const p of PLOTS) p.view.draw();
  findings(a);
  const notes = [a.note, a.series_left_out ? `${a.series_left_out} lines are left out: too many` : ""].filter(Boolean);
  note(notes.join("; "), false);
  const kind = a.origin === "live" ? (state.held ? "still" : "live") : "still";
  const what = a.origin === "live" ? (state.held ? "held" : "live") : a.origin;
  say(kind, `${what}${a.hostname && a.hostname !== a.host ? " · " + a.hostname : ""} · ${a.devices} device${a.devices === 1 ? "" : "s"}${a.problems ? ` · ${a.problems} places unreadable` : ""}`);
}

async function round() {
  clearTimeout(state.timer);
  const generation = state.generation;
  let wait = 1000;
  try {
    const r = await fetch(`api/data?host=${encodeURIComponent(state.host)}&since=${state.seq}`, { signal: AbortSignal.timeout(10000) });
    if (!r.ok) throw new Error(`${r.status} ${(await r.text()).trim()}`);
    const a = await r.json();
    if (generation !== state.generation) return; // another host was chosen meanwhile
    take(a);
    state.gone = 0;
    if (!state.held) render();
    wait = Math.max(250, Math.min(a.every_ms, 5000));
  } catch (e) {
    if (generation !== state.generation) return;
    state.gone++;
    say("error", "no answer");
    note(`The monitor does not answer (${e.message}). Asking again every few seconds; what is drawn is old.`, true);
    wait = Math.min(1000 * 2 ** state.gone, 8000);
  }
  state.timer = setTimeout(round, wait);
}

function choose(host) {
  reset(host);
  $("device").dataset.names = "?";
  history.replaceState(null, "", "#" + encodeURIComponent(host));
  for (const p of PLOTS) p.view.draw();
  round();
}

async function start() {
  $("plots").append(...PLOTS.map((p) => { p.view = new View(p); return p.view.root; }));
  new ResizeObserver(() => { for (const p of PLOTS) p.view.resize(); }).observe($("plots"));
  dark.addEventListener("change", () => { for (const p of PLOTS) p.view.draw(); });
  $("device").addEventListener("change", () => { for (const p of PLOTS) { p.view.ids = ""; p.view.off.clear(); } render(); });
  $("span").addEventListener("change", render);
  $("host").addEventListener("change", () => choose($("host").value));
  $("controls").addEventListener("submit", (e) => e.preventDefault());
  $("hold").addEventListener("click", () => {
    state.held = !state.held;
    $("hold").setAttribute("aria-pressed", String(state.held));
    $("hold").textContent = state.held ? "Go on" : "Hold";
    render();
  });
  for (;;) {
    try {
      const r = await fetch("api/hosts", { signal: AbortSignal.timeout(10000) });
      const hosts = await r.json();
      $("host").replaceChildren(...hosts.map((h) => make("option", { value: h.name, text: h.name + (h.origin === "live" ? "" : ` (${h.origin})`) })));
      let wanted = "";
      try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { /* somebody's typing */ }
      const first = hosts.some((h) => h.name === wanted) ? wanted : hosts[0].name;
      $("host").value = first;
      choose(first);
      return;
    } catch (e) {
      say("error", "no answer");
      note(`The monitor does not answer (${e.message}). Asking again …`, true);
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

start();
