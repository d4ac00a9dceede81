"use strict";
const graph = JSON.parse(document.getElementById("graph").textContent);
const canvas = document.getElementById("canvas"), view = document.getElementById("view");
const panel = document.getElementById("panel"), search = document.getElementById("search");
const drawn = [...view.querySelectorAll(".node")], edges = [...view.querySelectorAll(".edge")];
const nodes = graph.nodes;
const at = new Map(nodes.map((node, index) => [node.name, index]));
const nameOf = source => source.table ?? source.path;

// what each column comes from and goes into, by "node column"
const key = (node, column) => node + "\n" + column;
const into = new Map(), from = new Map();
const add = (map, one, other) => (map.get(one) ?? map.set(one, new Set()).get(one)).add(other);
nodes.forEach((node, index) => node.lineage.columns.forEach(column => column.from.forEach(source => {
  const origin = at.get(nameOf(source.source));
  if (origin === undefined) return;
  add(from, key(index, column.column), key(origin, source.column));
  add(into, key(origin, source.column), key(index, column.column));
})));
const readers = new Map(), read = new Map();
edges.forEach(edge => { add(readers, +edge.dataset.from, +edge.dataset.to); add(read, +edge.dataset.to, +edge.dataset.from); });

function reach(start, steps) {
  const found = new Set([start]), open = [start];
  while (open.length) for (const next of steps.get(open.pop()) ?? []) if (!found.has(next)) { found.add(next); open.push(next); }
  return found;
}

const subtitles = drawn.map(node => node.querySelector(".subtitle").textContent);
let chosen = null;

function light(lit, columns) {
  view.classList.toggle("some", lit !== null);
  drawn.forEach((node, index) => {
    const line = node.querySelector(".subtitle"), names = columns?.get(index);
    node.classList.toggle("lit", lit !== null && lit.has(index));
    node.classList.toggle("chosen", index === chosen?.node);
    line.textContent = names ? shortened([...names].join(", ")) : subtitles[index];
    line.classList.toggle("columns", !!names);
  });
  edges.forEach(edge => {
    const ends = [+edge.dataset.from, +edge.dataset.to];
    const along = columns ? tied(...ends, columns) : lit !== null && ends.every(end => lit.has(end));
    edge.classList.toggle("lit", along);
    if (along) edge.parentNode.insertBefore(edge, drawn[0]);
  });
}

const shortened = text => text.length > 34 ? text.slice(0, 33) + "…" : text;

// whether a lit column of one node comes into a lit column of the other
function tied(one, other, columns) {
  const targets = columns.get(other) ?? new Set();
  return [...columns.get(one) ?? []].some(column => [...into.get(key(one, column)) ?? []].some(next => {
    const [node, name] = next.split("\n");
    return +node === other && targets.has(name);
  }));
}

function choose(node, column) {
  chosen = node === null ? null : { node, column };
  if (chosen === null) { light(null); panel.hidden = true; return; }
  if (column === undefined) {
    light(new Set([...reach(node, readers), ...reach(node, read)]));
  } else {
    const columns = new Map();
    for (const one of [...reach(key(node, column), into), ...reach(key(node, column), from)]) {
      const [place, name] = one.split("\n");
      add(columns, +place, name);
    }
    light(new Set(columns.keys()), columns);
  }
  show(node, column);
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const words = { files: "Files", stream: "Stream", external: "Table made elsewhere", bronze: "Bronze", silver: "Silver", gold: "Gold" };
const manners = { identity: "", transformation: "computed from ", aggregation: "aggregated from " };
const number = value => value === null || value === undefined ? "–" : value.toLocaleString("en");

function link(name) {
  const index = at.get(name);
  return index === undefined ? name : element("button", { className: "link", textContent: name, onclick: () => choose(index) });
}

function list(title, names) {
  return names.length === 0 ? [] : [element("h3", { textContent: title }), element("ul", { className: "names" }, ...names.map(name => element("li", {}, link(name))))];
}

function run(node) {
  const last = node.last_run;
  if (!last) return [];
  const pair = (name, value) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }));
  return [
    element("h3", { textContent: "Last run" }),
    element("dl", {},
      pair("Status", last.status), pair("Rows in", number(last.rows_in)), pair("Rows out", number(last.rows_out)),
      pair("Version", number(last.version)), pair("Took", last.millis === null ? "–" : (last.millis / 1000).toFixed(2) + " s"),
      pair("Began", last.started_at.slice(0, 16).replace("T", " "))),
  ];
}

function columns(index, column) {
  const node = nodes[index], lineage = new Map(node.lineage.columns.map(one => [one.column, one.from]));
  if (node.columns.length === 0) return [];
  const rows = node.columns.map(one => {
    const sources = (lineage.get(one.name) ?? []).map(source => manners[source.manner] + nameOf(source.source) + "." + source.column);
    return element("button", { className: "column" + (one.name === column ? " chosen" : ""), onclick: () => choose(index, one.name === column ? undefined : one.name) },
      element("i", { textContent: one.data_type, title: one.data_type }), element("b", { textContent: one.name }),
      sources.length ? element("span", { textContent: "← " + sources.join(", ") }) : null);
  });
  return [element("h3", { textContent: node.columns.length + (node.columns.length === 1 ? " column" : " columns") }), ...rows];
}

function show(index, column) {
  const node = nodes[index];
  const reads = node.flows.length > 1
    ? node.flows.flatMap(flow => list("Flow " + flow.name + " reads", flow.reads))
    : list("Reads", [...read.get(index) ?? []].map(one => nodes[one].name));
  panel.replaceChildren(
    element("button", { className: "close", textContent: "×", title: "Close", onclick: () => choose(null) }),
    element("h2", { textContent: node.name }),
    element("p", { className: "what", textContent: words[node.kind] + (node.how ? " · " + node.how : "") }),
    ...run(node), ...reads, ...list("Read by", [...readers.get(index) ?? []].map(one => nodes[one].name)), ...columns(index, column));
  panel.hidden = false;
}

drawn.forEach((node, index) => {
  node.addEventListener("click", () => { if (!moved) choose(chosen?.node === index && chosen.column === undefined ? null : index); });
  node.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(index); } });
});
document.addEventListener("keydown", event => { if (event.key === "Escape") { search.value = ""; choose(null); } });
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  if (wanted === "") return choose(null);
  const found = new Map();
  nodes.forEach((node, index) => {
    const names = node.columns.filter(column => column.name.toLowerCase().includes(wanted)).map(column => column.name);
    if (names.length) found.set(index, new Set(names)); else if (node.name.toLowerCase().includes(wanted)) found.set(index, null);
  });
  chosen = null;
  panel.hidden = true;
  light(new Set(found.keys()), new Map([...found].filter(([, names]) => names)));
});

// the drawing fits the window, small ones at their own size; wheel and drag move it
const whole = canvas.viewBox.baseVal, size = { width: whole.width, height: whole.height };
let place = { x: 0, y: 0, scale: 1 }, moved = false, own = false;
canvas.removeAttribute("viewBox");
const apply = () => view.setAttribute("transform", `translate(${place.x} ${place.y}) scale(${place.scale})`);
function fit() {
  if (own) return;
  const box = canvas.getBoundingClientRect();
  place.scale = Math.min(1.15, box.width / size.width, box.height / size.height);
  place.x = Math.max(0, (box.width - size.width * place.scale) / 2);
  place.y = Math.max(0, (box.height - size.height * place.scale) / 2);
  apply();
}
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  own = true;
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const scale = Math.min(3, Math.max(0.1, place.scale * Math.exp(-event.deltaY / 500)));
  place = { x: x - (x - place.x) * scale / place.scale, y: y - (y - place.y) * scale / place.scale, scale };
  apply();
}, { passive: false });
canvas.addEventListener("pointerdown", event => {
  const start = { x: event.clientX - place.x, y: event.clientY - place.y }, begin = [event.clientX, event.clientY];
  moved = false;
  const move = event => {
    moved ||= Math.hypot(event.clientX - begin[0], event.clientY - begin[1]) > 4;
    if (!moved) return;
    own = true;
    canvas.classList.add("dragging");
    place.x = event.clientX - start.x;
    place.y = event.clientY - start.y;
    apply();
  };
  const end = () => { canvas.classList.remove("dragging"); removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end);
});
canvas.addEventListener("click", event => { if (!moved && event.target === canvas) choose(null); });
new ResizeObserver(fit).observe(canvas);
