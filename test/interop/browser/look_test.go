package browser_test

// judges look at a page that stands still. Each names what is wrong, or nothing.
var judges = []struct{ says, script string }{
	{"out of the window", outside},
	{"cut off or covered", cut},
	{"too small to read", small},
	{"charts' text that is cut off or covered", chartText},
	{"charts' ink that does not stand out", chartInk},
	{"a chart's words at the pointer", tips},
	{"a box to be scrolled that keys do not reach", unreached},
}

// few makes one line of a list: the first, and how many there are.
const few = `const few = (l) => { const s = [...new Set(l)]; return s.slice(0, 4).join("; ") + (s.length > 4 ? "; and " + (s.length - 4) + " more" : ""); };
  const called = (e) => e.tagName + (e.getAttribute("class") ? "." + e.getAttribute("class") : "") + " “" + e.textContent.trim().replace(/\s+/g, " ").slice(0, 40) + "”";`

// outside names what is beyond the window's edges and not in a box of its own.
const outside = `(() => { ` + few + `
  return few([...document.querySelectorAll("body *")].filter((e) => {
    const r = e.getBoundingClientRect();
    return r.width > 0 && r.height > 0 && (r.right > innerWidth + 1 || r.left < -1) && !e.parentElement.closest(".scroll, .chart, svg");
  }).map(called));
})()`

// cut names elements whose text is larger than they are, and cells over which others lie.
const cut = `(() => { ` + few + `
  const bad = [];
  for (const e of document.querySelectorAll("body *:not(svg *)")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent) continue;
    const s = getComputedStyle(e);
    if (s.display !== "inline" && s.overflowX !== "auto" && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) bad.push(called(e));
  }
  for (const b of document.querySelectorAll(".scroll, .chart")) {
    const w = b.getBoundingClientRect();
    for (const e of b.querySelectorAll("th, td, caption, svg")) {
      const r = e.getBoundingClientRect();
      // Of what a box holds all can be scrolled into view.
      if (r.left < w.left - b.scrollLeft - 1 || r.right > w.left - b.scrollLeft + b.scrollWidth + 1) bad.push(called(e));
    }
  }
  return few(bad);
})()`

// small names texts below 12 pixels, in charts below 10: those that a phone shows without
// being asked to magnify.
const small = `(() => { ` + few + `
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const svg = e.closest("svg");
    if (svg ? e.tagName !== "text" : !e.offsetParent) continue;
    const px = parseFloat(getComputedStyle(e).fontSize) * (svg ? svg.getScreenCTM().a : 1);
    if (px < (svg ? 10 : 12) - 0.01) bad.push(called(e) + " " + px.toFixed(1) + " px");
  }
  return few(bad);
})()`

// chartText names labels that leave their picture, or lie on each other.
const chartText = `(() => { ` + few + `
  const bad = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const f = svg.getBoundingClientRect();
    const all = [...svg.querySelectorAll("text")].map((e) => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
    for (const [e, r] of all) if (r.left < f.left - 1 || r.right > f.right + 1 || r.top < f.top - 1 || r.bottom > f.bottom + 1) bad.push(svg.closest("figure").id + ": " + called(e) + " leaves the picture");
    for (let i = 0; i < all.length; i++) for (let k = 0; k < i; k++) {
      const a = all[i][1], b = all[k][1];
      const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // The box of a line of text has room above and below its letters.
      if (w > 1 && h > Math.min(a.height, b.height) / 3) bad.push(svg.closest("figure").id + ": " + called(all[i][0]) + " on " + called(all[k][0]));
    }
  }
  return few(bad);
})()`

// chartInk names text and lines of charts that are too near to the page's ground: WCAG 2.1
// §1.4.3, 4.5 to 1 for text, and §1.4.11, 3 to 1 for lines. A grid has no meaning, and what
// is faint is what lies behind.
const chartInk = `(() => { ` + few + `
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const lum = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const ground = lum(rgb(getComputedStyle(document.body).backgroundColor));
  const bad = [];
  for (const e of document.querySelectorAll("figure svg :is(text, path, rect, circle)")) {
    if (e.closest("clipPath, defs")) continue;
    const s = getComputedStyle(e), text = e.tagName === "text";
    if (e.classList.contains("vs3") || e.classList.contains("vf3") || e.classList.contains("vf0") || parseFloat(s.opacity) < 1) continue;
    for (const c of text ? [s.fill] : [s.fill, s.stroke]) {
      if (c === "none") continue;
      const r = ratio(lum(rgb(c)), ground);
      if (r < (text ? 4.5 : 3)) bad.push(called(e) + " " + c + " " + r.toFixed(2));
    }
  }
  return few(bad);
})()`

// unreached names boxes with more in them than they show that the keyboard cannot move in
// (WCAG 2.1 §2.1.1).
const unreached = `(() => { ` + few + `
  return few([...document.querySelectorAll(".scroll, .chart, pre")].filter((e) => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0).map(called));
})()`

// tips points at the middle of every chart with a scale, and names those whose values are
// not told, or not wholly in the window.
const tips = `(() => { ` + few + `
  const bad = [], tip = document.getElementById("tip");
  for (const svg of document.querySelectorAll("svg[data-frame]")) {
    if (!svg.querySelector(".v-line path")) continue;
    svg.scrollIntoView({ block: "center" });
    const [x, y, w, h] = svg.dataset.frame.split(" ").map(Number), m = svg.getScreenCTM();
    svg.dispatchEvent(new PointerEvent("pointermove", { clientX: m.e + (x + w / 2) * m.a, clientY: m.f + (y + h / 2) * m.d }));
    const r = tip.getBoundingClientRect(), name = svg.closest("figure").id;
    if (tip.hidden || !tip.textContent.includes("\n")) bad.push(name + " says nothing");
    else if (r.left < 0 || r.top < 0 || r.right > innerWidth || r.bottom > innerHeight || tip.scrollWidth > tip.clientWidth + 1 || tip.scrollHeight > tip.clientHeight + 1) bad.push(name + " says it outside of the window");
    svg.dispatchEvent(new PointerEvent("pointerleave"));
  }
  scrollTo(0, 0);
  return few(bad);
})()`
