// Words and numbers for people, and the making of elements.
"use strict";

const $ = (id) => document.getElementById(id);
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

function clock(ms, minutes) {
  const o = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (!minutes) o.second = "2-digit";
  return new Date(ms).toLocaleTimeString([], o);
}

function many(n, word) { return `${n} ${word}${n === 1 ? "" : "s"}`; }

// natural sorts numbers in names as numbers.
function natural(a, b) { return a.localeCompare(b, "en", { numeric: true }); }
