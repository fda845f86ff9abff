// lib/report/page/tables.js - elements, tables and searches
//
// SPDX-License-Identifier: Apache-2.0
//
// Names and messages are put in as text and never as HTML, whatever they have in them. A table of any length has its first rows in the
// document, and more when they are asked for: a page of a large graph opens at once.
"use strict";

/// An element with attributes; `onclick` and others that are functions are properties. Children are elements or text.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (typeof value === "function") made[key] = value;
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return made;
}

const code = (text) => make("span", {class: "name"}, text);
const button = (text, onclick, attributes = {}) => make("button", {type: "button", onclick, ...attributes}, text);
const numberText = new Intl.NumberFormat("en").format;
const counted = (count, one, many = one + "s") => `${numberText(count)} ${count === 1 ? one : many}`;

function bytesText(bytes) {
  if (bytes === undefined) return "not known";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return `${unit === 0 ? bytes : bytes.toFixed(bytes < 10 ? 2 : 1)} ${units[unit]}`;
}

/// Items of a list, the first `most` of them and a button for all others.
function shortList(items, most, row) {
  const list = make("ul", {}, items.slice(0, most).map((item) => make("li", {}, row(item))));
  if (items.length > most) {
    const more = button(`Show ${counted(items.length - most, "more", "more")}`, () => {
      more.parentElement.replaceWith(...items.slice(most).map((item) => make("li", {}, row(item))));
    });
    list.append(make("li", {class: "more"}, more));
  }
  return list;
}

/// A table of `rows`, which are any objects. A column has a `title`, `cell`, which makes what is in it of a row, and a `key` that it
/// is sorted by. `detail`, if given, makes what a row shows when it is opened, by a button in its first column.
class Table {
  static #ids = 0;
  static first = 10;
  static step = 100;

  constructor({caption, columns, rows, detail, openWith}) {
    Object.assign(this, {columns, rows: [...rows], detail, openWith, shown: 0, parts: new Map()});
    this.id = `table-${++Table.#ids}`;
    this.body = make("tbody");
    this.heads = columns.map((column) => make("th", {scope: "col", class: column.number && "number"},
      column.key ? button(column.title, () => this.sort(column), {class: "plain"}) : column.title));
    this.more = make("p", {class: "more"});
    this.element = make("div", {}, make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
      make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, this.heads)), this.body)), this.more);
    this.show(Table.first);
  }

  show(count) {
    for (const row of this.rows.slice(this.shown, this.shown + count)) this.#add(row);
    this.shown = Math.min(this.rows.length, this.shown + count);
    const left = this.rows.length - this.shown;
    this.more.replaceChildren(...(left === 0 ? [] : [
      `${counted(this.shown, "row")} of ${numberText(this.rows.length)} `,
      button(`Show ${Math.min(left, 10 * Table.step)} more`, () => this.show(10 * Table.step)), " ",
      button("Show all", () => this.show(left)),
    ]));
  }

  #add(row) {
    const cells = this.columns.map((column, index) => {
      let content = column.cell(row);
      if (index === 0 && this.detail)
        content = button(content, () => this.toggle(row), {class: "plain name", "aria-expanded": "false"});
      return make(index === 0 ? "th" : "td", {scope: index === 0 && "row", class: column.number && "number"}, content);
    });
    const line = make("tr", {}, cells);
    this.body.append(line);
    this.parts.set(row, {line, opener: this.detail && cells[0].querySelector("button")});
  }

  toggle(row, open) {
    const part = this.parts.get(row);
    const isOpen = Boolean(part.detail);
    if (open === isOpen) return;
    part.opener.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      part.detail.remove();
      part.detail = undefined;
      return;
    }
    part.detail = make("tr", {class: "detail"}, make("td", {colspan: this.columns.length}, this.detail(row)));
    part.line.after(part.detail);
  }

  /// Brings the row into view, opened, and puts the focus there.
  reveal(row) {
    const index = this.rows.indexOf(row);
    if (index >= this.shown) this.show(index - this.shown + 1);
    if (this.detail) this.toggle(row, true);
    const {line, opener} = this.parts.get(row);
    mark(line);
    (opener ?? mark.focusable(line.firstChild)).focus({preventScroll: true});
  }

  sort(column) {
    const head = this.heads[this.columns.indexOf(column)];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const each of this.heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    this.rows.sort((a, b) => (up ? 1 : -1) * order(column.key(a), column.key(b)));
    const count = this.shown;
    this.shown = 0;
    this.parts.clear();
    this.body.replaceChildren();
    this.show(count);
  }
}

/// Shows where an element is.
function mark(element) {
  for (const other of document.querySelectorAll(".here")) other.classList.remove("here");
  element.classList.add("here");
  element.scrollIntoView({block: "center"});
}
mark.focusable = (element) => {
  element.tabIndex = -1;
  return element;
};

/// What has names that can be searched: `{name, what, go}` each, in the order in which they are found.
class Search {
  constructor(entries) {
    this.entries = entries;
    this.query = document.getElementById("query");
    this.found = document.getElementById("found");
    this.results = document.getElementById("results");
    this.query.addEventListener("input", () => this.run());
    document.getElementById("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
      this.results.querySelector("button")?.focus();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(input|textarea)$/i.test(event.target.tagName)) {
        event.preventDefault();
        this.query.focus();
      }
    });
  }

  run() {
    const words = this.query.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) {
      this.found.textContent = "";
      this.results.replaceChildren();
      return;
    }
    const all = this.entries.filter(({name}) => {
      const lower = name.toLowerCase();
      return words.every((word) => lower.includes(word));
    });
    // What is called so comes before what has it in its name.
    all.sort((a, b) => (b.name === this.query.value) - (a.name === this.query.value));
    const most = 50;
    this.found.textContent = all.length > most ? `${counted(all.length, "result")}, the first ${most} of them` : counted(all.length, "result");
    this.results.replaceChildren(...all.slice(0, most).map(({name, what, go}) =>
      make("li", {}, button(name, go, {class: "plain name"}), make("span", {}, what))));
  }
}
