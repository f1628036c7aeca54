// What the doctor says, what came and went, and what could not be read.
"use strict";

let shown = ""; // the findings as they are on the page

function findings(a) {
  const counts = { FAIL: 0, WARN: 0, INFO: 0 };
  for (const f of a.findings) counts[f.status]++;
  $("verdict").textContent = !a.judged ? "The doctor has not looked yet."
    : (a.findings.length ? `${counts.FAIL} to mend, ${counts.WARN} to look at, ${counts.INFO} to know` : "Nothing found") +
      `; ${many(a.passed, "check")} passed, ${a.skipped} could not be judged.` +
      (a.window_seconds ? ` Over ${+a.window_seconds.toPrecision(3)} s until ${clock(a.judged)}.` : " One look so far.");
  unread(a);
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

// unread lists the places of the host that could not be read, the first of them.
function unread(a) {
  const list = a.unread || [];
  const text = JSON.stringify([a.host, list, a.problems]);
  if (text === $("unread").dataset.text) return;
  $("unread").dataset.text = text;
  $("unread").hidden = !list.length;
  $("unread").querySelector("summary").textContent = many(a.problems, "place") + " could not be read";
  $("unread").querySelector("ul").replaceChildren(...list.map((p) => make("li", {}, make("code", { text: p.place }), " " + p.why)),
    ...(a.problems > list.length ? [make("li", { class: "empty", text: `and ${a.problems - list.length} more` })] : []));
}
