// lib/report/page/graph.js - the graph as boxes for scopes
//
// SPDX-License-Identifier: Apache-2.0
//
// One scope is open: in it each of its scopes has a box, and the nodes that are in none of them have one together. A click opens another.
// What its nodes take from, or give to, what is outside has boxes above and below. Edges of the report lead from innermost scope to
// innermost scope; between boxes there is one for all that lead from what is in the one to what is in the other. dagre says where boxes
// and edges go, and gets some fifty boxes at most, whatever the graph: of many scopes the largest are drawn, and one box stands for the
// others. What is done for a drawing is linear in scopes and edges.
"use strict";

const draw = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children.flat(Infinity).filter(Boolean));
  return made;
};

const shorten = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}\u2026${text.slice(-Math.floor(most / 2))}`);

const noCounts = () => ({nodes: 0, "per-replica": 0, inserted: 0, "in-step": 0});
const addTo = (sum, counts, times = 1) => {
  for (const key in sum) sum[key] += times * counts[key];
};

/// A scope of the graph, or the graph. What only drawings take is made for them: a large graph has a hundred thousand scopes.
class Scope {
  #ranked;

  constructor(name, title, counts, above) {
    Object.assign(this, {name, title, counts, above, children: [], most: ScopeTree.step});
    above?.children.push(this);
  }

  /// Its scopes, the largest first; of equal ones that which comes first.
  get ranked() {
    return this.#ranked ??= [...this.children].sort((a, b) => b.counts.nodes - a.counts.nodes);
  }

  /// Of the nodes that are in no scope of it.
  get own() {
    const left = noCounts();
    addTo(left, this.counts);
    for (const each of this.children) addTo(left, each.counts, -1);
    return left;
  }
}

/// The scopes of a report as a tree, whose root is the graph, and the one that is open.
class ScopeTree {
  static step = 24;
  static mostOutside = 8; // On either side.

  constructor({program, scopes, edges}) {
    this.root = new Scope("", "the graph", program);
    const byName = new Map();
    this.scopes = scopes.map((counts) => {
      const name = counts.scope;
      const slash = name.lastIndexOf("/");
      const above = byName.get(name.slice(0, Math.max(slash, 0))) ?? this.root;
      const scope = new Scope(name, name.slice(slash + 1), counts, above);
      byName.set(name, scope);
      return scope;
    });
    for (const edge of edges) {
      edge.source = this.scopes[edge.from] ?? this.root;
      edge.target = this.scopes[edge.to] ?? this.root;
    }
    this.edges = edges;
    this.open = this.root;
  }

  /// The open scope and what it is in, from the graph on.
  path() {
    const all = [];
    for (let at = this.open; at; at = at.above) all.unshift(at);
    return all;
  }

  /// Opens a scope; of one that has no scopes in it, that which it is in.
  go(scope) {
    const at = scope.children.length > 0 || !scope.above ? scope : scope.above;
    if (at !== scope) at.most = Math.max(at.most, at.ranked.indexOf(scope) + 1);
    this.open = at;
  }

  /// What is drawn: `boxes`, which are `{id, scope, title, counts}` with what kind they are, `edges` between them, and the scopes that are `hidden`.
  drawing() {
    const {open} = this;
    const boxes = [];
    const box = (its) => {
      boxes.push(its);
      return its;
    };
    // Of each scope the box that it is in; outside of the open one this is a scope beside the path to it, or what is loose there.
    const places = new Map();
    const onPath = new Set(this.path());
    // No step computes initialization and saving. Constants of graft in a scope of their own are no layer.
    const isDrawn = (scope) => scope.counts["in-step"] > 0 && !(scope.name === "graft" && scope.counts.nodes === scope.counts.inserted);
    const isIdle = !open.ranked.some(isDrawn);
    const ranked = open.ranked.filter((scope) => isIdle || isDrawn(scope));
    const hidden = isIdle ? [] : open.ranked.filter((scope) => !isDrawn(scope));
    const loose = open.own;
    if (loose.nodes > 0)
      places.set(open, box({id: "loose", scope: open, isLoose: true, title: open.above ? "in no smaller scope" : "in no scope", counts: loose}));
    for (const scope of ranked.slice(0, open.most)) places.set(scope, box({id: `scope ${scope.name}`, scope, title: scope.title, counts: scope.counts}));
    const rest = ranked.slice(open.most);
    if (rest.length > 0) {
      const others = box({id: "others", scope: open, isRest: true, title: counted(rest.length, "smaller scope"), counts: noCounts()});
      for (const scope of rest) {
        addTo(others.counts, scope.counts);
        places.set(scope, others);
      }
    }
    const outside = (scope, title, counts) => ({scope, title, counts, isOutside: true});
    for (const scope of hidden) places.set(scope, undefined);
    for (const scope of onPath)
      if (scope !== open) places.set(scope, outside(scope, scope.above ? `${scope.name}, in no smaller scope` : "in no scope", scope.own));
    for (const scope of this.scopes)
      if (!places.has(scope))
        places.set(scope, onPath.has(scope.above) && scope.above !== open ? outside(scope, scope.name, scope.counts) : places.get(scope.above));

    const found = new Map();
    const ids = new Map();
    const idOf = (place) => {
      if (!ids.has(place)) ids.set(place, ids.size);
      return ids.get(place);
    };
    for (const edge of this.edges) {
      const from = places.get(edge.source), to = places.get(edge.target);
      if (!from || !to || from === to || (from.isOutside && to.isOutside)) continue;
      const key = idOf(from) * (this.scopes.length + 8) + idOf(to);
      if (!found.has(key)) found.set(key, {from, to, ...noTraffic()});
      addTraffic(found.get(key), edge);
    }
    return {boxes, edges: this.#bound([...found.values()], boxes), hidden};
  }

  /// The edges, with a box above and one below for what is outside: those with the most edges, and one for others.
  #bound(edges, boxes) {
    for (const [side, what] of [["from", "in"], ["to", "out"]]) {
      const totals = new Map();
      for (const edge of edges) if (edge[side].isOutside) totals.set(edge[side], (totals.get(edge[side]) ?? 0) + edge.edges);
      const ranked = [...totals].sort((a, b) => b[1] - a[1]).map(([place]) => place);
      const drawn = new Map();
      ranked.slice(0, ScopeTree.mostOutside).forEach((place, index) => drawn.set(place, {...place, id: `${what} ${index}`}));
      const rest = ranked.slice(ScopeTree.mostOutside);
      if (rest.length > 0) {
        const others = {id: `${what} others`, scope: this.root, isOutside: true, title: counted(rest.length, "other"), counts: noCounts()};
        for (const place of rest) {
          addTo(others.counts, place.counts);
          drawn.set(place, others);
        }
      }
      boxes.push(...new Set(drawn.values()));
      for (const edge of edges) edge[side] = drawn.get(edge[side]) ?? edge[side];
    }
    const joined = new Map();
    for (const edge of edges) {
      const key = `${edge.from.id}\n${edge.to.id}`;
      if (!joined.has(key)) joined.set(key, {from: edge.from, to: edge.to, ...noTraffic()});
      addTraffic(joined.get(key), edge);
    }
    return [...joined.values()];
  }
}

const noTraffic = () => ({edges: 0, exchanges: 0, bytes: 0});
const addTraffic = (sum, {edges, exchanges = 0, bytes = 0}) => {
  sum.edges += edges;
  sum.exchanges += exchanges;
  sum.bytes += bytes;
};
const trafficText = ({edges, exchanges, bytes}) => counted(edges, "edge")
  + (exchanges ? `, ${numberText(exchanges)} of them between replicas` : "") + (bytes ? `, ${bytesText(bytes)} a replica` : "");

/// Draws a ScopeTree, and says beside it what is in a scope and what leads there.
class GraphView {
  static font = "12px system-ui, sans-serif";

  /// `inside` makes what more is said of a scope.
  constructor(report, inside) {
    this.tree = new ScopeTree(report);
    this.inside = inside;
    this.zoom = 1;
    this.path = make("ol", {class: "path", "aria-label": "The scope that is open"});
    this.picture = make("div", {class: "picture", tabindex: "0", role: "group", "aria-label": "What is in the open scope, a box for each scope"});
    this.left = make("p", {class: "note"});
    this.panel = make("div", {class: "panel", "aria-live": "polite"});
    this.picture.onkeydown = (event) => {
      if (event.key === "Escape" && this.tree.open.above) this.go(this.tree.open.above, this.tree.open);
    };
    const scale = (by) => () => {
      this.zoom = by ? Math.min(3, Math.max(0.1, this.zoom * by)) : this.fit();
      this.resize();
    };
    this.element = make("div", {},
      make("div", {class: "tools"}, this.path, make("span", {}, button("Larger", scale(1.25)), " ", button("Smaller", scale(0.8)), " ", button("All of it", scale(0)))),
      this.picture, this.left,
      make("ul", {class: "legend"},
        make("li", {}, make("span", {class: "swatch spread"}), "a copy for each replica"),
        make("li", {}, make("span", {class: "swatch once"}), "once"),
        make("li", {}, make("span", {class: "swatch outside"}), "outside of the open scope"),
        make("li", {}, make("span", {class: "swatch exchange"}), "edges between replicas: from copies to what combines them or exists once, or back")),
      this.panel);
    const context = document.createElement("canvas").getContext("2d");
    context.font = `600 ${GraphView.font}`;
    this.width = (text) => context.measureText(text).width;
  }

  canOpen(box) { return box.isRest || (!box.isLoose && box.scope !== this.tree.open && box.scope.children.length > 0); }

  lines(box) {
    const {nodes, inserted} = box.counts;
    return [`${this.canOpen(box) ? "\u25B8 " : ""}${shorten(box.title, 34)}`,
      `${counted(nodes, "node")}${inserted ? `, ${numberText(inserted)} inserted` : ""}`];
  }

  redraw() {
    this.path.replaceChildren(...this.tree.path().map((scope) => make("li", {}, scope === this.tree.open
      ? make("span", {tabindex: "-1", "aria-current": "true"}, code(scope.title)) : button(code(scope.title), () => this.go(scope), {class: "plain"}))));
    const {boxes, edges, hidden} = this.tree.drawing();
    const graph = new dagre.graphlib.Graph({compound: true});
    graph.setGraph({rankdir: "TB", nodesep: 14, ranksep: 38, edgesep: 8, marginx: 8, marginy: 8});
    graph.setDefaultEdgeLabel(() => ({}));
    const hasFrame = Boolean(this.tree.open.above);
    if (hasFrame) graph.setNode("open", {});
    for (const box of boxes) {
      const lines = this.lines(box);
      graph.setNode(box.id, {box, lines, width: Math.max(...lines.map(this.width)) + 22, height: 46});
      if (hasFrame && !box.isOutside) graph.setParent(box.id, "open");
    }
    for (const edge of edges) graph.setEdge(edge.from.id, edge.to.id, {edge, weight: 1 + Math.log2(edge.edges)});
    dagre.layout(graph);
    // An edge may bend outside of all boxes.
    const {width, height} = graph.graph();
    const bends = graph.edges().flatMap((id) => graph.edge(id).points);
    const [left, top] = ["x", "y"].map((axis) => Math.min(0, ...bends.map((at) => at[axis] - 8)));
    const [right, bottom] = [["x", width], ["y", height]].map(([axis, size]) => Math.max(1, size, ...bends.map((at) => at[axis] + 8)));
    this.size = [right - left, bottom - top];
    this.svg = draw("svg", {viewBox: `${left} ${top} ${this.size.join(" ")}`},
      draw("defs", {}, ["edge", "exchange"].map((kind) => draw("marker",
        {id: `arrow-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto"},
        draw("path", {d: "M0 0L8 4L0 8z", class: `arrow ${kind}`})))));
    const frame = graph.node("open");
    if (frame)
      this.svg.append(draw("rect", {x: frame.x - frame.width / 2, y: frame.y - frame.height / 2, width: frame.width, height: frame.height, rx: 6, class: "frame"}));
    this.svg.append(...graph.edges().map((id) => this.drawEdge(graph.edge(id))));
    this.svg.append(...boxes.map(({id}) => this.drawBox(graph.node(id))));
    this.picture.replaceChildren(this.svg);
    this.left.replaceChildren(...(hidden.length === 0 ? [] : ["Not drawn: ",
      ...hidden.slice(0, 8).flatMap((scope, index) => [index ? ", " : "", button(code(scope.title), () => this.go(scope), {class: "plain"})]),
      hidden.length > 8 ? ` and ${hidden.length - 8} more` : ""]));
    this.zoom = Math.max(0.4, this.fit());
    this.resize();
    this.picture.scrollLeft = (this.picture.scrollWidth - this.picture.clientWidth) / 2;
  }

  fit() {
    const room = this.picture.clientWidth - 4;
    return room > 0 ? Math.min(1, room / this.size[0]) : 1;
  }

  resize() {
    this.svg.setAttribute("width", this.size[0] * this.zoom);
    this.svg.setAttribute("height", this.size[1] * this.zoom);
  }

  /// Opens a scope, and puts the focus there, or on the box of one in it.
  go(scope, focused = scope) {
    this.tree.go(scope);
    this.redraw();
    this.tell(focused);
    const box = [...this.svg.querySelectorAll("[data-scope]")].find((each) => each.dataset.scope === focused.name);
    const at = box ?? this.path.querySelector("[aria-current]");
    if (box) mark(box);
    at.focus({preventScroll: true});
  }

  drawBox({box, lines, x, y, width, height}) {
    const left = x - width / 2, top = y - height / 2;
    const {nodes, "per-replica": copies, inserted} = box.counts;
    const label = `${box.isOutside ? "outside: " : ""}${box.title}: ${counted(nodes, "node")}, ${copies} per replica, ${inserted} inserted${this.canOpen(box) ? "; opens" : ""}`;
    const act = () => {
      if (box.isRest) {
        box.scope.most += 2 * ScopeTree.step;
        this.go(box.scope);
      } else if (this.canOpen(box)) this.go(box.scope);
      else this.tell(box.scope);
    };
    const element = draw("g", {role: "button", tabindex: 0, "aria-label": label, "data-scope": box.isLoose || box.isRest ? undefined : box.scope.name},
      draw("title", {}, label),
      draw("rect", {x: left, y: top, width, height, rx: 5, class: `box${box.isOutside ? " outside" : ""}`}),
      draw("rect", {x: left + 6, y: top + height - 9, width: width - 12, height: 5, class: "once"}),
      draw("rect", {x: left + 6, y: top + height - 9, width: (width - 12) * (nodes ? copies / nodes : 0), height: 5, class: "spread"}),
      draw("text", {x: left + 10, y: top + 16, class: "title"}, lines[0]),
      draw("text", {x: left + 10, y: top + 31}, lines[1]));
    element.onclick = act;
    element.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    };
    return element;
  }

  drawEdge({edge, points}) {
    const kind = edge.exchanges > 0 ? "exchange" : "edge";
    const [first, ...rest] = points;
    let path = `M${first.x} ${first.y}`;
    // Smooth through the points: each but the last is where a curve bends.
    for (let i = 0; i + 1 < rest.length; ++i) {
      const last = i + 2 === rest.length;
      const end = last ? rest[i + 1] : {x: (rest[i].x + rest[i + 1].x) / 2, y: (rest[i].y + rest[i + 1].y) / 2};
      path += `Q${rest[i].x} ${rest[i].y} ${end.x} ${end.y}`;
    }
    if (rest.length === 1) path += `L${rest[0].x} ${rest[0].y}`;
    return draw("path", {d: path, class: `line ${kind}`, "stroke-width": 1 + Math.min(3, Math.log10(edge.edges)), "marker-end": `url(#arrow-${kind})`},
      draw("title", {}, `${edge.from.title} to ${edge.to.title}: ${trafficText(edge)}`));
  }

  /// What is in a scope, and what leads there: to scopes of the highest level that are not around it.
  tell(scope) {
    const {nodes, "per-replica": copies, inserted} = scope.counts;
    const isAround = new Set();
    for (let at = scope; at; at = at.above) isAround.add(at);
    const isInside = (at) => {
      for (; at; at = at.above) if (at === scope) return true;
      return false;
    };
    const nameOf = (at) => {
      if (isAround.has(at)) return at.above ? `${at.name}, in no smaller scope` : "nodes in no scope";
      while (!isAround.has(at.above)) at = at.above;
      return at.name;
    };
    const sides = {in: new Map(), out: new Map()};
    for (const edge of this.tree.edges) {
      const isOut = isInside(edge.source);
      if (isOut === isInside(edge.target)) continue;
      const other = nameOf(isOut ? edge.target : edge.source);
      const side = sides[isOut ? "out" : "in"];
      if (!side.has(other)) side.set(other, noTraffic());
      addTraffic(side.get(other), edge);
    }
    const list = (title, side) => side.size === 0 ? "" : make("div", {}, make("h4", {}, title), shortList(
      [...side].sort((a, b) => b[1].bytes - a[1].bytes || b[1].edges - a[1].edges), 8, ([name, its]) => [code(name), ": ", trafficText(its)]));
    this.panel.replaceChildren(make("h3", {}, code(scope.name || scope.title)),
      make("p", {}, `${counted(nodes, "node")}: ${copies} per replica, ${nodes - copies} once; ${inserted} inserted.`),
      make("div", {class: "parts"}, this.inside(scope), list("In, from", sides.in), list("Out, to", sides.out)));
  }
}
