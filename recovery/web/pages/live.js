"use strict";
// Everything is written as text: what a node printed cannot become a part of the page.
const at = id => document.getElementById(id);
function el(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}
const cell = (...children) => el("td", "", ...children);

function stepRow(step) {
  const ended = step.outcome === "running" ? el("span", "dim", "running") : el("span", `tag ${step.outcome}`, step.outcome);
  const nodes = el("td", "nodes", step.counts);
  if (step.outcome === "running" && step.of) {
    const bar = document.createElement("progress");
    bar.max = step.of;
    bar.value = step.done;
    bar.setAttribute("aria-label", `${step.id}: ${step.done} of ${step.of} nodes`);
    nodes.append(el("div", "", bar, ` ${step.done} of ${step.of}`));
    if (step.waiting) nodes.append(el("div", "dim", `waiting for ${step.waiting}`));
  }
  const again = step.attempt > 1 ? ` (attempt ${step.attempt})` : "";
  return el("tr", "", cell(step.id + again), cell(ended), nodes, cell(step.gate), cell(step.took));
}
const findingRow = f => el("tr", "", cell(el("span", `tag ${f.level}`, f.level)), el("td", "nodes mono", f.nodes),
  el("td", "said", f.finding, document.createElement("br"), el("span", "dim", f.remedy)), cell(f.step));

function show(run) {
  at("end").className = `end ${run.state}`;
  at("state").textContent = run.state;
  at("why").textContent = run.why;
  at("took").textContent = `(${run.took})`;
  at("next").hidden = !run.next;
  at("command").textContent = run.next;
  at("steps").replaceChildren(...run.steps.map(stepRow));
  at("findings").replaceChildren(...run.findings.rows.map(findingRow));
  at("none").hidden = run.findings.rows.length > 0;
  at("more").hidden = !run.findings.more;
  at("more").textContent = `and ${run.findings.more} more: see the whole report`;
  at("words").hidden = !run.notes.length;
  at("notes").textContent = run.notes.join("\n");
  at("about").textContent = run.about;
  document.title = `${run.state}: ${run.about}`;
}

const events = new EventSource("events");
events.addEventListener("open", () => { at("link").textContent = "live"; });
events.addEventListener("error", () => { at("link").textContent = "the connection is lost; trying again"; });
events.addEventListener("progress", event => show(JSON.parse(event.data)));
events.addEventListener("trouble", event => { events.close(); at("link").textContent = JSON.parse(event.data); });
events.addEventListener("end", () => { events.close(); at("link").textContent = "the run has ended; this is its last state"; });
