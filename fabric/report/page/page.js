// Pointing, hiding and zooming. The page is complete without it.
(() => {
"use strict";
const tip = document.getElementById("tip");
const charts = [];

// points returns the places of a path "M x y l dx dy …".
const points = d => {
  const n = d.match(/-?\d*\.?\d+/g).map(Number), p = [[n[0], n[1]]];
  for (let i = 2; i + 1 < n.length; i += 2) {
    const l = p[p.length - 1];
    p.push([l[0] + n[i], l[1] + n[i + 1]]);
  }
  return p;
};

const say = (e, text) => {
  tip.textContent = text;
  tip.hidden = !text;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - w - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - h - 8)) + "px";
};

document.querySelectorAll("svg[data-frame]").forEach((svg, id) => {
  const [x, y, w, h, x0, x1, y0, y1] = svg.dataset.frame.split(" ").map(Number);
  const data = svg.querySelector(".v-data"), ticks = svg.querySelector(".v-xticks");
  if (!data) return;
  const make = (name, attrs) => {
    const e = document.createElementNS(svg.namespaceURI, name);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    return e;
  };
  const c = { from: x0, to: x1, zoom: svg.dataset.zoom };
  charts.push(c);
  const old = ticks ? ticks.innerHTML : "";
  const lines = [...svg.querySelectorAll(".v-line")].map(g => {
    const p = g.querySelector("path");
    return { g, name: g.dataset.name, pts: p ? points(p.getAttribute("d")) : [] };
  });

  // The clip is around the group that moves, or it would move as well.
  const clip = make("clipPath", { id: "clip" + id });
  clip.append(make("rect", { x, y: y - 2, width: w, height: h + 4 }));
  const around = make("g", { "clip-path": "url(#clip" + id + ")" });
  data.replaceWith(around);
  around.append(data);
  svg.prepend(clip);

  const unpx = (p, a, b, n, log) => log ? a * Math.pow(b / a, p / n) : a + (b - a) * p / n;
  const at = e => {
    const m = svg.getScreenCTM();
    return [(e.clientX - m.e) / m.a, (e.clientY - m.f) / m.d];
  };
  const shown = v => Math.abs(v) >= 1e5 || v === 0 ? String(Math.round(v)) : Number(v.toPrecision(4)).toString();

  c.show = (from, to) => {
    c.from = from;
    c.to = to;
    const k = (x1 - x0) / (to - from), moved = (from - x0) / (x1 - x0) * w;
    data.setAttribute("transform", "translate(" + (x - (x + moved) * k) + " 0) scale(" + k + " 1)");
    if (!ticks) return;
    if (from === x0 && to === x1) { ticks.innerHTML = old; return; }
    ticks.replaceChildren();
    const raw = (to - from) / 6, ten = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = ten * (raw / ten <= 1 ? 1 : raw / ten <= 2 ? 2 : raw / ten <= 5 ? 5 : 10);
    for (let i = Math.ceil(from / step); i * step <= to; i++) {
      const t = make("text", { x: x + (i * step - from) / (to - from) * w, y: y + h + 16, "font-size": 11, "text-anchor": "middle", class: "vf2" });
      t.textContent = Number((i * step).toPrecision(12)).toString();
      ticks.append(t);
    }
  };

  let began = null;
  const band = make("rect", { class: "vf7", opacity: .15 });
  svg.addEventListener("pointermove", e => {
    const [px, py] = at(e);
    if (began !== null) {
      const a = Math.max(x, Math.min(began, px)), b = Math.min(x + w, Math.max(began, px));
      for (const [k, v] of Object.entries({ x: a, y, width: Math.max(0, b - a), height: h })) band.setAttribute(k, v);
      svg.append(band);
      return;
    }
    if (px < x || px > x + w || py < y || py > y + h || !lines.length) { say(e, ""); return; }
    const v = svg.dataset.xlog ? unpx(px - x, x0, x1, w, true) : unpx(px - x, c.from, c.to, w, false);
    const drawn = svg.dataset.xlog ? px : x + (v - x0) / (x1 - x0) * w;
    let text = shown(v) + " " + svg.dataset.xunit;
    for (const l of lines) {
      if (l.g.style.display === "none" || !l.pts.length) continue;
      let i = l.pts.findIndex(p => p[0] > drawn);
      i = i < 0 ? l.pts.length - 1 : Math.max(0, i - 1);
      if (i + 1 < l.pts.length && l.pts[i + 1][0] - drawn < drawn - l.pts[i][0]) i++;
      text += "\n" + (l.name ? l.name + ": " : "") + shown(unpx(y + h - l.pts[i][1], y0, y1, h, svg.dataset.ylog)) + " " + svg.dataset.yunit;
    }
    say(e, text);
  });
  svg.addEventListener("pointerleave", e => { say(e, ""); });
  svg.addEventListener("pointerdown", e => {
    const [px, py] = at(e);
    if (!c.zoom || e.button || px < x || px > x + w || py < y || py > y + h) return;
    began = px;
    say(e, "");
    svg.setPointerCapture(e.pointerId);
    e.preventDefault();
  });
  svg.addEventListener("pointerup", e => {
    if (began === null) return;
    const ends = [began, at(e)[0]].map(p => Math.max(0, Math.min(w, p - x))).sort((a, b) => a - b);
    began = null;
    band.remove();
    if (ends[1] - ends[0] < 4) return;
    const [from, to] = ends.map(p => c.from + (c.to - c.from) * p / w);
    // They have one axis, of the run's time, and one unit for it.
    charts.filter(o => o.zoom).forEach(o => o.show(from, to));
  });
  svg.addEventListener("pointercancel", () => { began = null; band.remove(); }); // a finger scrolls the page
  c.all = () => c.show(x0, x1);

  svg.querySelectorAll(".v-key").forEach(key => {
    const l = lines.find(l => l.g.dataset.line === key.dataset.line);
    if (!l) return;
    key.setAttribute("tabindex", 0);
    key.setAttribute("role", "button");
    key.setAttribute("aria-pressed", "true");
    const turn = () => {
      const off = key.classList.toggle("off");
      key.setAttribute("aria-pressed", String(!off));
      l.g.style.display = off ? "none" : "";
    };
    key.addEventListener("click", turn);
    key.addEventListener("keydown", e => {
      if (e.key === "Enter" || e.key === " ") { e.preventDefault(); turn(); }
    });
  });
  svg.setAttribute("role", "group"); // what is in it can be reached now
});

const reset = () => charts.forEach(c => c.zoom && c.all());
document.addEventListener("keydown", e => { if (e.key === "Escape") reset(); });
document.addEventListener("dblclick", e => { if (e.target.closest("svg")) reset(); });

// What is wider than its box is scrolled by keys too, once it has the focus.
const wide = new ResizeObserver(boxes => boxes.forEach(({ target: b }) => {
  if (b.scrollWidth <= b.clientWidth) { b.removeAttribute("tabindex"); return; }
  b.tabIndex = 0;
}));
document.querySelectorAll(".chart, .scroll, pre").forEach(b => wide.observe(b));

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
})();
