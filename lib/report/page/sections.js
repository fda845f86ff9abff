// lib/report/page/sections.js - the sections of a report
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the page of the report, whose fields docs/Report.md has. The report is in the page as zlib makes it smaller, in base64:
// neither names nor messages can end the element that it is in.
"use strict";

/// Each section adds itself to the page, and what it has to `entries`, for the search.
class Page {
  constructor(report) {
    this.report = report;
    this.entries = [];
    this.late = []; // Behind all others: there are many.
    // The line of each node of the program, by name, if the report has them. What was inserted may be called like a node of the input.
    this.lines = new Map();
    this.inScope = new Map();
    for (const {scope, line, inserted} of report.nodes ?? []) {
      const name = line.slice(0, line.indexOf(" = "));
      if (this.lines.has(name) && inserted) continue;
      if (!this.lines.has(name)) {
        if (!this.inScope.has(scope)) this.inScope.set(scope, []);
        this.inScope.get(scope).push(name);
      }
      this.lines.set(name, line);
    }
  }

  section(id, title, ...content) {
    const heading = make("h2", {id: `${id}-title`}, title);
    document.getElementById("main").append(make("section", {id, "aria-labelledby": heading.id}, heading, ...content));
    document.getElementById("contents").append(make("li", {}, make("a", {href: `#${id}`}, title)));
  }

  show() {
    const {input, graft} = this.report;
    document.title = `${input.file} - graft report`;
    document.getElementById("input-name").textContent = input.file;
    document.getElementById("version").textContent = graft;
    this.verdict();
    this.causes();
    this.warnings();
    this.graph();
    this.steps();
    this.variables();
    this.reductions();
    this.nodes();
    this.remarks();
    this.overview();
    new Search([...this.entries, ...this.late]);
  }

  /// The percentage of the work that the replicas share, or undefined if no step is distributed.
  percent() {
    const {output, messages} = this.report;
    const all = messages.filter(({Id, Facts}) => Id === "spread" && Facts?.percent !== undefined).map(({Facts}) => Facts.percent);
    if (all.length > 0) return Math.min(...all);
    return output.replicas === 0 || messages.some(({Id}) => Id === "spread") ? undefined : 100;
  }

  /// Sentences that say what the output computes, how much of it is distributed, and what to do next.
  verdict() {
    const {input, output, variables, reductions, messages, plan} = this.report;
    const has = (level) => messages.filter(({Level}) => Level === level).length;
    const percent = this.percent();
    const items = [];
    const item = (kind, title, ...text) => items.push(make("li", {class: kind}, make("strong", {}, title), " ", ...text));
    const list = (id, count, one) => make("a", {href: `#${id}`}, counted(count, one));
    if (has("error") > 0)
      item("bad", "Refused.", "graft wrote no output, see ", list("warnings", has("error"), "error"), ".");
    else if (has("warning") > 0)
      item("fair", "The same step as the input, with reservations.", "Read the ", list("warnings", has("warning"), "warning"), " before you train.");
    else item("good", "The same step as the input: proved.", "Every variable and every fetch has the value of one device.");
    const kinds = new Set(output.devices.map((device) => device.match(/device:(\w+)/)?.[1] ?? "device"));
    const where = `${output.replicas} ${kinds.size === 1 ? [...kinds][0] : "device"}${output.replicas === 1 ? "" : "s"}`;
    if (percent !== undefined)
      item(percent < 50 ? "bad" : percent < 90 ? "fair" : "good", `${percent} % of the work`, `of a step is shared by ${where}.`);
    else if (has("error") === 0)
      item("fair", "Not distributed.", "One device computes the step.");
    // A variable and its slots have one gradient, of the same size.
    const sizes = new Map(variables.flatMap((each) => each.reductions.map((index) => [index, each.bytes ?? 0])));
    if (reductions.length > 0)
      item("plain", counted(reductions.length, "reduction"), `in a step; those for variables have ${bytesText([...sizes.values()].reduce((a, b) => a + b, 0))}.`);
    const best = plan?.strategies.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    const now = plan?.strategies.find((each) => each.strategy === plan.strategy);
    if (best && now && best.seconds < 0.9 * now.seconds)
      item("plain", "Next:", "try ", code(`--strategy=${best.strategy}`), ", whose step is predicted to communicate for ",
        `${Math.round(100 - 100 * best.seconds / now.seconds)} % less time, see `, make("a", {href: "#steps"}, "Predicted steps"), ".");
    else if (has("error") === 0 && output.file)
      item("plain", "Next:", "compare losses and variables of both graphs: ", code(`python -m graft check ${input.file} ${output.file}`));
    this.section("verdict", "Verdict", make("ul", {class: "verdict"}, items));
  }

  /// The nodes at which work is lost, with the most work first.
  causes() {
    const notes = this.report.messages.filter(({Id}) => Id === "spread").flatMap(({Notes, Function}) =>
      (Notes ?? []).map((note) => [note, Function]));
    if (notes.length === 0) return;
    this.section("causes", "Causes", make("p", {class: "note"}, "The part of a step that is computed once begins at these nodes."),
      shortList(notes, 5, ([note, of]) => [note, of ? [" (function ", code(of), ")"] : ""]));
  }

  overview() {
    const {input, output, variables, reductions, messages} = this.report;
    const pairs = (list) => make("dl", {class: "pairs"}, list.map(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
    const level = (name) => messages.filter((message) => message.Level === name).length;
    const functions = messages.find(({Id}) => Id === "functions"); // Of a SavedModel, instead of its graph.
    const policies = new Map();
    for (const {policy} of variables) policies.set(policy, (policies.get(policy) ?? 0) + 1);
    const sum = (count) => variables.reduce((bytes, each) => bytes + (each.bytes ?? 0) * count(each), 0);
    const part = (title, list) => make("div", {}, make("h3", {}, title), pairs(list));
    this.section("overview", "Files", make("div", {class: "parts"},
      part("In", [["File", code(input.file)], ["Graph", `${counted(input.nodes, "node")}, ${bytesText(input["graph-bytes"])}`]]),
      part("Out", [
        ["File", code(output.file || "none")],
        ["Replicas", output.replicas === 0 ? functions ? `the graph has none; ${functions.Message}` : "none: nothing was distributed" : String(output.replicas)],
        ...(output.devices.length ? [["Devices", shortList(output.devices, 16, code)]] : []),
        ...("node-bytes" in output ? [["Graph", bytesText(output["node-bytes"])]] : []),
      ]),
      part("What was done", [
        ["Variables", `${variables.length}${policies.size ? ": " : ""}${[...policies].map(([policy, count]) => `${count} ${policy}`).join(", ")}`],
        ["Bytes of them", `${bytesText(sum(() => 1))}; ${bytesText(sum((each) => each.copies))} with all copies`],
        ["Reductions", String(reductions.length)],
        ["Messages", `${counted(level("error"), "error")}, ${counted(level("warning"), "warning")}, ${counted(level("remark"), "remark")}`],
      ])));
  }

  message(message) {
    const notes = message.Notes ?? [];
    return make("article", {class: message.Level},
      make("p", {}, make("span", {class: "level"}, message.Level), " ", make("code", {}, message.Id ?? ""), message.Pass ? ` of ${message.Pass}` : ""),
      message.Node && make("p", {}, code(message.Node), message.Function ? [" of function ", code(message.Function)] : ""),
      make("p", {}, message.Message),
      notes.length > 0 && shortList(notes, 5, (note) => note),
      message.Help && make("p", {}, make("strong", {}, "What to do: "), message.Help));
  }

  /// Errors and warnings; those that say the same of several nodes are together.
  warnings() {
    const together = new Map();
    for (const message of this.report.messages)
      if (message.Level !== "remark") {
        const key = JSON.stringify([message.Level, message.Id, message.Pass, message.Message, message.Notes]);
        if (!together.has(key)) together.set(key, []);
        together.get(key).push(message);
      }
    const groups = [...together.values()].sort((a, b) => (b[0].Level === "error") - (a[0].Level === "error"));
    const articles = groups.map((group) => {
      const article = this.message(group[0]);
      if (group.length > 1) {
        const rest = make("details", {}, make("summary", {}, `and ${counted(group.length - 1, "node")} more`),
          shortList(group.slice(1), 20, (message) => code(message.Node)));
        article.append(rest);
      }
      for (const message of group)
        if (message.Node) this.entries.push({name: message.Node, what: message.Level, go: () => {
          mark(article);
          mark.focusable(article).focus({preventScroll: true});
        }});
      return article;
    });
    this.section("warnings", "Warnings", make("p", {class: "note"}, groups.length === 0
      ? "There are none." : "The values that are not proved, the results that they affect, and how to settle them."), ...articles);
  }

  graph() {
    if (this.report.program.nodes === 0 || this.report.scopes.length === 0) return;
    const view = new GraphView(this.report, (scope) => [
      this.listOf("Nodes in no smaller scope", this.inScope.get(view.tree.scopes.indexOf(scope)) ?? [], (each) => each, (each) => this.explain(each)),
      this.listOf("Variables", this.report.variables.filter((each) => isIn(each.name, scope)), (each) => each.name, (each) => this.revealVariable(each)),
      this.listOf("Reductions", this.report.reductions.filter((each) => isIn(each.node, scope)), (each) => each.node, (each) => this.reductionTable.reveal(each))]);
    this.section("graph", "Graph", make("p", {class: "note"}, "The program before it is written out for each replica: a node stands for all of its copies."),
      view.element);
    view.redraw();
    view.tell(view.tree.open);
    // What is said of one is made when it is found: there may be a hundred thousand.
    this.late = view.tree.scopes.map((scope) => ({name: scope.name, get what() { return `scope of ${counted(scope.counts.nodes, "node")}`; }, go: () => view.go(scope)}));
  }

  listOf(title, list, nameOf, go) {
    return list.length === 0 ? "" : make("div", {}, make("h4", {}, `${title}: ${list.length}`),
      shortList(list, 6, (each) => button(nameOf(each), () => go(each), {class: "plain name"})));
  }

  nodes() {
    if (this.lines.size === 0) return;
    this.explained = make("div", {"aria-live": "polite"});
    this.section("nodes", "Nodes", make("p", {class: "note"}, "How the replication type of a node came about, back to the feeds that are split: click a name, here or in the graph, or search for one."),
      this.explained);
    this.explain(this.report.reductions[0]?.node ?? this.lines.keys().next().value, false);
    this.late = [...[...this.lines.keys()].map((name) => ({name, what: "node", go: () => this.explain(name)})), ...this.late];
  }

  /// Shows the line of a node and, breadth first, those of the nodes that it names.
  explain(name, goes = true) {
    const most = 20;
    const queue = this.lines.has(name) ? [name] : [];
    for (let i = 0; i < queue.length && queue.length < most; ++i)
      for (const [part, isName] of this.partsOf(this.lines.get(queue[i])).slice(1))
        if (isName && !queue.includes(part) && queue.length < most) queue.push(part);
    const title = make("h3", {tabindex: "-1"}, code(name));
    this.explained.replaceChildren(title, make("ol", {class: "chain", "aria-label": `How the type of ${name} was inferred`},
      queue.map((each) => this.chainLine(this.lines.get(each)))));
    if (!goes) return;
    title.scrollIntoView({block: "start"});
    title.focus({preventScroll: true});
  }

  /// A line as `[text, whether it is the name of a node]`; the name of its node comes first.
  partsOf(line) {
    const end = line.indexOf(" = ");
    const parts = [[line.slice(0, end), this.lines.has(line.slice(0, end))]];
    // No name has a quote in it.
    for (const [index, text] of line.slice(end).split("'").entries()) {
      const name = text.replace(/:\d+$/, "");
      if (index % 2 === 0) parts.push([text, false]);
      else parts.push([name, this.lines.has(name)], [text.slice(name.length), false]);
    }
    return parts;
  }

  /// A row for each layer: the variables of a scope, each followed by its slots, which are in the scope of its name.
  variables() {
    const {variables} = this.report;
    const first = new Map(variables.map((each, index) => [each.name, index]));
    const scopeOf = (name) => name.slice(0, Math.max(0, name.lastIndexOf("/")));
    const owner = (name) => {
      for (let scope = scopeOf(name); scope; scope = scopeOf(scope)) if (first.has(scope)) return owner(scope);
      return name;
    };
    const layers = new Map();
    this.layerOf = new Map();
    // A variable comes before its slots.
    const sorted = variables.map((each) => ({each, of: owner(each.name)})).sort((a, b) => first.get(a.of) - first.get(b.of));
    for (const {each, of} of sorted) {
      const name = scopeOf(of) || of;
      if (!layers.has(name)) layers.set(name, {name, variables: [], slots: 0});
      const layer = layers.get(name);
      layer.variables.push(each);
      layer.slots += of !== each.name;
      this.layerOf.set(each, layer);
      this.entries.push({name: each.name, what: `variable, ${each.policy}`, go: () => this.revealVariable(each)});
    }
    const different = (values) => [...new Set(values)];
    const bytesOf = (layer) => (layer.variables.some((each) => each.bytes === undefined) ? undefined : layer.variables.reduce((sum, each) => sum + each.bytes, 0));
    this.layerTable = new Table({
      caption: `${counted(variables.length, "variable")} in ${counted(layers.size, "layer")}: where they are, and the reductions that update them`,
      rows: [...layers.values()],
      columns: [
        {title: "Layer", cell: (each) => code(each.name), key: (each) => each.name},
        {title: "Variables", cell: (each) => counted(each.variables.length - each.slots, "variable") + (each.slots ? ` and ${counted(each.slots, "slot")}` : ""),
          key: (each) => each.variables.length},
        {title: "Policy", cell: (each) => different(each.variables.map(({policy}) => policy)).join(", "), key: (each) => each.variables[0].policy},
        {title: "Bytes of one copy", number: true, cell: (each) => bytesText(bytesOf(each)), key: (each) => bytesOf(each) ?? -1},
        {title: "Where", cell: (each) => this.devices(different(each.variables.flatMap(({devices}) => devices)))},
        {title: "Reductions", number: true, cell: (each) => String(this.reductionsOf(each).length), key: (each) => this.reductionsOf(each).length},
      ],
      detail: (layer) => (layer.table = this.variableTable(layer)).element,
    });
    this.section("variables", "Variables", this.layerTable.element);
  }

  reductionsOf(layer) {
    return [...new Set(layer.variables.flatMap((each) => each.reductions))];
  }

  variableTable(layer) {
    const {reductions} = this.report;
    return new Table({
      caption: `Variables of ${layer.name}`,
      rows: layer.variables,
      columns: [
        {title: "Variable", cell: (each) => code(each.name), key: (each) => each.name},
        {title: "Policy", cell: (each) => each.policy, key: (each) => each.policy},
        {title: "Copies", number: true, cell: (each) => String(each.copies), key: (each) => each.copies},
        {title: "Bytes of one", number: true, cell: (each) => bytesText(each.bytes), key: (each) => each.bytes ?? -1},
        {title: "Where", cell: (each) => this.devices(each.devices)},
        {title: "Reduced for its update", cell: (each) => each.reductions.length === 0 ? "none of its own" : each.reductions.slice(0, 3).map((index) =>
          make("div", {}, button(reductions[index].message.split(", for '")[0], () => this.reductionTable.reveal(reductions[index]), {class: "plain"})))},
      ],
    });
  }

  revealVariable(variable) {
    const layer = this.layerOf.get(variable);
    this.layerTable.reveal(layer);
    layer.table.reveal(variable);
  }

  devices(devices) {
    if (devices.length === 0) return "the graph names no device";
    if (devices.length < 3) return devices.map((device) => make("div", {}, code(device)));
    return make("details", {}, make("summary", {}, code(devices[0]), ` and ${devices.length - 1} more`),
      make("ul", {}, devices.slice(1).map((device) => make("li", {}, code(device)))));
  }

  reductions() {
    const {reductions} = this.report;
    this.reductionTable = new Table({
      caption: `${counted(reductions.length, "tensor")} whose replicas' values are combined. Open one to see how its type came about`,
      rows: reductions,
      columns: [
        {title: "Node", cell: (each) => each.node, key: (each) => each.node},
        {title: "Type", cell: (each) => each.type ?? "", key: (each) => each.type ?? ""},
        {title: "Scale", cell: (each) => this.scale(each.scale), key: (each) => each.scale ?? 0},
        {title: "For", cell: (each) => code(each.for ?? ""), key: (each) => each.for ?? ""},
        {title: "Pass", cell: (each) => each.pass, key: (each) => each.pass},
      ],
      detail: (each) => [make("p", {}, each.message), each.chain
        ? make("ol", {class: "chain", "aria-label": `How the type of ${each.node} was inferred`}, each.chain.map((line) => this.chainLine(line)))
        : make("p", {class: "note"}, "Nothing is known of how its type came about.")],
    });
    for (const each of reductions)
      this.entries.push({name: each.node, what: `reduction for ${each.for ?? each.pass}`, go: () => this.reductionTable.reveal(each)});
    this.section("reductions", "Reductions", this.reductionTable.element);
  }

  scale(power) {
    if (power === undefined) return "";
    if (power === 0) return "as it is";
    return power === -1 ? "divided by the replicas" : `times replicas to the ${power}`;
  }

  chainLine(line) {
    return make("li", {}, this.partsOf(line).map(([text, isName], index) => isName
      ? button(text, () => this.explain(text), {class: "plain name"}) : index === 0 ? code(text) : text));
  }

  steps() {
    const {plan} = this.report;
    if (!plan) return;
    this.section("steps", "Predicted steps", make("p", {class: "note"}, "As --plan predicts them. Ratios of whole steps are smaller: computing takes the same under all strategies."),
      make("p", {class: "tools"}, button("Save as a trace for Perfetto", () => save("trace.json", trace(plan)), {id: "trace"})), stepLegend(), stepTable(plan).element);
  }

  /// What was done, by what kind of thing it is.
  remarks() {
    const kinds = new Map();
    for (const message of this.report.messages)
      if (message.Level === "remark") {
        if (!kinds.has(message.Id)) kinds.set(message.Id, []);
        kinds.get(message.Id).push(message);
      }
    const all = [...kinds].map(([id, messages]) => {
      const details = make("details", {}, make("summary", {}, make("code", {}, id), `, ${messages.length}`));
      const open = () => {
        if (details.table) return;
        details.table = new Table({
          caption: messages[0].Help ? `What to do: ${messages[0].Help}` : id,
          rows: messages,
          columns: [
            {title: "Node", cell: (each) => code(each.Node ?? ""), key: (each) => each.Node ?? ""},
            {title: "It says", cell: (each) => [each.Message, this.facts(each.Facts)]},
          ],
        });
        details.append(details.table.element);
      };
      details.addEventListener("toggle", open);
      for (const message of messages)
        if (message.Node) this.entries.push({name: message.Node, what: `remark: ${id}`, go: () => {
          details.open = true;
          open();
          details.table.reveal(message);
        }});
      return details;
    });
    this.section("remarks", "Remarks", make("p", {class: "note"}, "What was done, and why."), ...all);
  }

  facts(facts = {}) {
    const all = Object.entries(facts);
    return all.length === 0 ? "" : make("dl", {class: "pairs"}, all.map(([key, value]) => [make("dt", {}, key),
      make("dd", {}, Array.isArray(value) ? shortList(value, 10, code) : code(String(value)))]));
  }
}

const isIn = (name, scope) => !scope.above || name === scope.name || name.startsWith(`${scope.name}/`);

/// Has the browser save JSON.
function save(name, text) {
  const link = make("a", {href: URL.createObjectURL(new Blob([text], {type: "application/json"})), download: name});
  link.click();
  URL.revokeObjectURL(link.href);
}

/// The text that is in the page, which is zlib's in base64.
async function readReport() {
  const packed = document.getElementById("report").textContent.trim();
  const letters = atob(packed);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(unpacked).text();
}

readReport().then((text) => {
  const page = new Page(JSON.parse(text));
  page.show();
  document.getElementById("download").addEventListener("click", () => save("report.json", text));
  document.documentElement.dataset.ready = "yes";
}).catch((error) => {
  document.getElementById("main").append(make("p", {role: "alert"}, `The report cannot be shown: ${error.message}. Browsers since 2023 can show it.`));
  throw error;
});
