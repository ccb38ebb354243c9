"use strict";
// Everything is written as text, never as HTML: what a node printed cannot become a part of the page.
const data = JSON.parse(document.getElementById("data").textContent);
const LEVELS = ["pass", "warn", "unknown", "fail"];
const SHOWN = 100, PRINTED = 2000;
const at = id => document.getElementById(id);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const tag = level => level < 0 ? el("span", {class: "none"}, "not asked")
  : el("span", {class: `tag ${LEVELS[level]}`}, LEVELS[level]);
const cell = (...children) => el("td", {}, ...children);
const said = (...children) => el("td", {class: "said"}, ...children);
const link = node => el("a", {href: `#node/${encodeURIComponent(node[0])}`, class: "mono"}, node[0]);
const bytes = n => `${n.toLocaleString("en")} B`;

// What the search looks through: of a node its name and all that was found on it.
const order = data.nodes.map((_, i) => i).sort((a, b) => data.nodes[b][1] - data.nodes[a][1] || a - b);
const haystack = data.nodes.map(([name, , aside, steps]) => {
  const found = new Set(steps.flatMap(s => s ? s[1] : []));
  return [name, aside, ...[...found].flatMap(i => data.said[i].slice(1))].join("\n").toLowerCase();
});
const wanted = {text: "", levels: new Set([0, 1, 2, 3, -1]), step: -1};

function levelOf(node) {
  if (wanted.step < 0) return node[1];
  const result = node[3][wanted.step];
  return result ? result[0] : -1;
}
const nodeFits = i => wanted.levels.has(levelOf(data.nodes[i]))
  && (wanted.step < 0 || data.nodes[i][3][wanted.step]) && haystack[i].includes(wanted.text);

function findingFits([level, step, nodes, folded, words, remedy]) {
  if (!wanted.levels.has(level) || (wanted.step >= 0 && data.steps[wanted.step] !== step)) return false;
  const text = wanted.text;
  return [step, folded, words, remedy].some(w => w.toLowerCase().includes(text))
    || nodes.some(i => data.nodes[i][0].toLowerCase().includes(text));
}

// A table that shows the first rows, and more when asked: thousands of rows would freeze the page.
function paged(body, count, rows, draw, name) {
  let shown = 0;
  const more = el("button", {type: "button"});
  const foot = el("p", {class: "dim"}, more);
  body.replaceChildren();
  function grow(many) {
    body.append(...rows.slice(shown, shown + many).map(draw));
    shown = Math.min(rows.length, shown + many);
    count.textContent = shown < rows.length ? `${shown} of ${rows.length} ${name} shown` : `${rows.length} ${name}`;
    more.textContent = `show ${Math.min(5 * SHOWN, rows.length - shown)} more`;
    foot.hidden = shown >= rows.length;
  }
  more.addEventListener("click", () => grow(5 * SHOWN));
  const table = body.closest(".scroll");
  if (table.nextElementSibling?.dataset.foot) table.nextElementSibling.remove();
  foot.dataset.foot = "1";
  table.after(foot);
  grow(SHOWN);
  return grow;
}

function findingRow([level, step, nodes, folded, words, remedy]) {
  const who = nodes.length === 1 ? link(data.nodes[nodes[0]]) : document.createTextNode(folded || "the step");
  return el("tr", {}, cell(tag(level)), el("td", {class: "nodes mono"}, who),
    said(words, el("br"), el("span", {class: "dim"}, remedy)), el("td", {class: "step"}, step));
}

function nodeRow(i) {
  const node = data.nodes[i];
  const bad = node[3].flatMap((s, k) => s && s[0] > 0 && (wanted.step < 0 || wanted.step === k)
    ? [`${data.steps[k]}: ${worstWords(s)}`] : []).filter(words => words !== node[2]);
  if (node[2]) bad.unshift(`set aside by ${node[2]}`);
  return el("tr", {}, cell(tag(levelOf(node))), cell(link(node)), said(bad.join("; ") || el("span", {class: "none"}, "-")));
}
const worstWords = result => [...result[1]].map(i => data.said[i]).sort((a, b) => b[0] - a[0])[0]?.[1] || "";

let moreFindings = () => {};
function draw() {
  moreFindings = paged(at("finding-rows"), at("n-findings"), data.findings.filter(findingFits), findingRow, "findings");
  paged(at("node-rows"), at("n-nodes"), order.filter(nodeFits), nodeRow, "nodes");
}

// One node: what each step found on it, the tests it took part in, its raw evidence.
function showNode(number) {
  const [name, level, aside, steps] = data.nodes[number];
  at("node-name").replaceChildren(name + " ", tag(level));
  at("node-aside").firstChild.textContent = aside ? `set aside by ${aside}` : "";
  for (const code of document.querySelectorAll("[data-node]")) code.textContent = code.dataset.node.replace(/NODE$/, () => name);
  at("node-aside").hidden = !aside;
  at("node-steps").replaceChildren(...steps.map((result, k) => stepRow(data.steps[k], result)));
  const tests = data.tests.filter(t => t[1].includes(number)).sort((a, b) => a[4] - b[4] || (a[3] || 0) - (b[3] || 0));
  at("node-mesh").hidden = !tests.length;
  at("node-tests").replaceChildren(...tests.map(testRow));
  const kept = steps.flatMap((result, k) => result ? result[2].map(i => [data.steps[k], ...data.kept[i]]) : []);
  at("node-kept").replaceChildren(...kept.map(evidence));
  at("node-none").hidden = kept.length > 0;
}
function stepRow(step, result) {
  if (!result) return el("tr", {}, cell(step), cell(el("span", {class: "none"}, "not asked")), cell(""), cell(""));
  const found = result[1].map(i => data.said[i]).sort((a, b) => b[0] - a[0]);
  const lines = found.map(([level, words, remedy]) => el("div", {}, level ? tag(level) : "", " ", words,
    remedy ? el("div", {class: "dim"}, remedy) : ""));
  return el("tr", {}, cell(step), cell(tag(result[0])), said(...lines), el("td", {class: "step"}, `${result[3]} s`));
}
const testRow = ([round, , folded, speed, ok, words]) => el("tr", {}, cell(round),
  el("td", {class: "nodes mono"}, folded), cell(speed === null ? "none" : `${speed.toFixed(1)} GB/s`),
  cell(tag(ok ? 0 : 3)), cell(words));

function evidence([step, name, digest, size]) {
  const box = el("details", {}, el("summary", {}, el("span", {class: "mono"}, name.slice(0, 200)), " ",
    el("span", {class: "dim"}, `${step}, ${bytes(size)}`)));
  box.dataset.digest = digest;
  box.addEventListener("toggle", () => fill(box), {once: true});
  return box;
}
function fill(box) {
  if (box.dataset.full) return;
  const digest = box.dataset.digest;
  box.dataset.full = "1";
  const [text, cut] = data.texts[digest] || [null, 0];
  const file = el("a", {href: `../evidence/${digest.slice(0, 2)}/${digest}`}, "the whole file");
  const words = text === null ? "not in this page (too large, not text, or no room left): "
    : cut ? `${cut.toLocaleString("en")} characters of its middle are left out: ` : "";
  box.append(el("p", {class: "dim"}, words, file, " ", el("span", {class: "mono"}, `sha256 ${digest}`)));
  if (text !== null) box.append(el("pre", {tabindex: "0"}, text));
}

function route() {
  const [kind, name] = location.hash.slice(1).split("/");
  const number = kind === "node" ? data.nodes.findIndex(n => n[0] === decodeURIComponent(name)) : -1;
  at("run").hidden = number >= 0;
  at("node").hidden = number < 0;
  if (number < 0) return;
  at("node").dataset.number = number;
  showNode(number);
  scrollTo(0, 0);
  at("node-name").focus();
}
function neighbour(by) {
  const here = order.indexOf(Number(at("node").dataset.number));
  const there = order[here + by];
  if (there !== undefined) location.hash = link(data.nodes[there]).getAttribute("href");
}

let pending = 0;
at("search").addEventListener("input", () => {
  clearTimeout(pending);
  pending = setTimeout(() => { wanted.text = at("search").value.toLowerCase().trim(); draw(); }, 80);
});
for (const box of document.querySelectorAll("input[data-level]")) box.addEventListener("change", () => {
  for (const level of box.dataset.level.split(" ")) wanted.levels[box.checked ? "add" : "delete"](Number(level));
  draw();
});
at("step").append(...data.steps.map((s, i) => el("option", {value: i}, s)));
at("step").addEventListener("change", () => { wanted.step = Number(at("step").value); draw(); });
at("back").addEventListener("click", () => { location.hash = "nodes"; });
at("next").addEventListener("click", () => neighbour(1));
at("previous").addEventListener("click", () => neighbour(-1));
addEventListener("hashchange", route);
addEventListener("keydown", event => {
  const typing = event.target.matches("input[type=search], select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && !at("node").hidden) location.hash = "nodes";
  else if (event.key === "Escape" && typing) event.target.blur();
  else if (typing) return;
  else if (event.key === "/") { event.preventDefault(); location.hash = ""; route(); at("search").focus(); }
  else if (event.key === "n" && !at("node").hidden) neighbour(1);
  else if (event.key === "p" && !at("node").hidden) neighbour(-1);
});
addEventListener("beforeprint", () => {
  moreFindings(PRINTED);
  for (const box of document.querySelectorAll("#node-kept details")) { fill(box); box.open = true; }
});

const root = document.documentElement;
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
at("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });

for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
draw();
route();
