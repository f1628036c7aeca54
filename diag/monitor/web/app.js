// The page: asks /api/data once a second for what is new, keeps ten minutes, has it drawn
// (plot.js) and told (findings.js). It loads nothing but its own files and sends nothing
// but these questions.
"use strict";

const KEEP = 600;          // samples
const HOSTS_EVERY = 10000; // ms between two looks at the list of hosts
const CALM_EVERY = 5000;   // ms between two pictures for who wants less motion
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// What is known of the host that is shown. devices only grows: a device keeps its colour.
const state = { host: "", began: 0, seq: 0, times: [], series: new Map(), devices: [], events: [], last: null, held: false, timer: 0, generation: 0, gone: 0, hosts: "", listed: 0 };

function reset(host) {
  state.host = host;
  state.last = null;
  state.devices = [];
  state.generation++;
  state.gone = 0;
  forget();
  for (const p of PLOTS) p.view.forget();
}

function forget() {
  state.seq = 0;
  state.times = [];
  state.series = new Map();
  state.events = [];
}

// take joins an answer with what is known.
function take(a) {
  if (a.seq < state.seq || a.times.length >= KEEP) { // the ring has gone round: everything is new
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
  for (const d of devices().sort(natural)) place(state.devices, d);
  if (state.times.length > KEEP) state.times.splice(0, state.times.length - KEEP);
  state.began = a.began;
  state.seq = a.seq;
  state.events = a.events;
  state.last = a;
}

function devices() { return [...new Set([...state.series.values()].map((s) => s.device))]; }

// ---- the head of the page

function say(kind, text) {
  document.querySelector(".dot").className = "dot " + kind;
  if ($("statetext").textContent !== text) $("statetext").textContent = text;
}

function note(text, error) {
  $("note").hidden = !text;
  if ($("note").textContent !== text) $("note").textContent = text;
  $("note").className = error ? "error" : "";
}

// choices fills the list of devices. It is left alone while nothing changes: it may be open.
function choices(a) {
  const now = $("device").value;
  const about = a.ports || {};
  const names = devices().sort(natural);
  const key = JSON.stringify(names.map((n) => [n, about[n]]));
  if (key === $("device").dataset.names) return;
  $("device").dataset.names = key;
  $("device").replaceChildren(make("option", { value: "", text: names.length > 1 ? `all ${names.length}` : "all" }),
    ...names.map((n) => make("option", { value: n, text: about[n] ? `${n} · ${about[n]}` : n })));
  $("device").value = names.includes(now) ? now : "";
}

// listed fills the list of hosts: each with what the doctor says of it.
function listed(hosts) {
  const key = JSON.stringify(hosts);
  if (key === state.hosts) return;
  state.hosts = key;
  const now = $("host").value;
  const text = (h) => [h.name, h.origin === "live" ? "" : h.origin, [h.fail ? `${h.fail} FAIL` : "", h.warn ? `${h.warn} WARN` : ""].filter(Boolean).join(" ")].filter(Boolean).join(" · ");
  const options = hosts.map((h) => make("option", { value: h.name, text: text(h) }));
  if (options.length === $("host").options.length && options.every((o, i) => o.value === $("host").options[i].value)) {
    options.forEach((o, i) => { $("host").options[i].textContent = o.textContent; }); // an open list stays open
    return;
  }
  $("host").replaceChildren(...options);
  if (hosts.some((h) => h.name === now)) $("host").value = now;
}

async function hosts() {
  const r = await fetch("api/hosts", { signal: AbortSignal.timeout(10000) });
  if (!r.ok) throw new Error(`${r.status} ${(await r.text()).trim()}`);
  const all = await r.json();
  state.listed = Date.now();
  listed(all);
  return all;
}

function render() {
  const a = state.last;
  if (!a) return;
  choices(a);
  $("guide").hidden = !a.bare;
  $("plots").hidden = !!a.bare && !state.series.size;
  for (const p of PLOTS) p.view.draw();
  findings(a);
  note([a.note, a.series_left_out ? `${many(a.series_left_out, "line")} left out: too many` : ""].filter(Boolean).join("; "), false);
  const live = a.origin === "live";
  say(live && !state.held ? "live" : "still", [live ? (state.held ? "held" : "live") : a.origin, a.hostname && !a.host.startsWith(a.hostname) ? a.hostname : "", many(a.devices, "device")].filter(Boolean).join(" · "));
  const fails = a.findings.filter((f) => f.status === "FAIL").length;
  document.title = (fails ? `(${fails}) ` : "") + a.host + " · Verbena monitor";
}

// ---- the round

async function round() {
  clearTimeout(state.timer);
  const generation = state.generation;
  let wait = 1000;
  try {
    const r = await fetch(`api/data?host=${encodeURIComponent(state.host)}&since=${state.seq}`, { signal: AbortSignal.timeout(10000) });
    if (generation !== state.generation) return; // another host was chosen meanwhile
    if (r.status === 404) return begin(); // the monitor was started anew with other hosts
    if (!r.ok) throw new Error(`${r.status} ${(await r.text()).trim()}`);
    const a = await r.json();
    if (generation !== state.generation) return;
    if (state.began && a.began !== state.began) { // it was started anew: its counts are others
      forget();
      state.began = 0;
      return void (state.timer = setTimeout(round, 0));
    }
    take(a);
    state.gone = 0;
    if (!state.held) render();
    wait = Math.max(250, Math.min(a.every_ms, 5000));
    if (calm.matches) wait = Math.max(wait, CALM_EVERY);
    if (Date.now() - state.listed > HOSTS_EVERY) await hosts();
  } catch (e) {
    if (generation !== state.generation) return;
    state.gone++;
    say("error", "no answer");
    note(`The monitor does not answer (${e.message}). Asking again every few seconds; what is drawn is old.`, true);
    wait = Math.min(1000 * 2 ** state.gone, 8000);
  }
  if (generation === state.generation) state.timer = setTimeout(round, wait);
}

function choose(host) {
  reset(host);
  $("host").value = host;
  $("device").dataset.names = "?";
  $("guide").hidden = true;
  $("plots").hidden = false;
  const hash = "#" + encodeURIComponent(host);
  if (location.hash !== hash) history.replaceState(null, "", hash);
  for (const p of PLOTS) p.view.draw();
  round();
}

function wanted() {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } // somebody's typing
}

// begin asks who is there, until it is told, and shows the one that the address names.
async function begin() {
  const generation = ++state.generation;
  for (;;) {
    try {
      const all = await hosts();
      if (generation !== state.generation) return;
      const name = wanted();
      choose(all.some((h) => h.name === name) ? name : all[0].name);
      return;
    } catch (e) {
      say("error", "no answer");
      note(`The monitor does not answer (${e.message}). Asking again …`, true);
      await new Promise((done) => setTimeout(done, 2000));
      if (generation !== state.generation) return;
    }
  }
}

function start() {
  $("plots").append(...PLOTS.map((p) => { p.view = new View(p); return p.view.root; }));
  new ResizeObserver(() => { for (const p of PLOTS) p.view.resize(); }).observe($("plots"));
  dark.addEventListener("change", () => { for (const p of PLOTS) p.view.draw(); });
  $("device").addEventListener("change", () => { for (const p of PLOTS) { p.view.ids = ""; p.view.off.clear(); } render(); });
  $("span").addEventListener("change", render);
  $("host").addEventListener("change", () => choose($("host").value));
  addEventListener("hashchange", () => { const h = wanted(); if (h !== state.host && [...$("host").options].some((o) => o.value === h)) choose(h); });
  $("controls").addEventListener("submit", (e) => e.preventDefault());
  $("hold").addEventListener("click", () => {
    state.held = !state.held;
    $("hold").setAttribute("aria-pressed", String(state.held));
    $("hold").textContent = state.held ? "Go on" : "Hold";
    render();
  });
  begin();
}

start();
