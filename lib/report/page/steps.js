// lib/report/page/steps.js - what a step is predicted to take
//
// SPDX-License-Identifier: Apache-2.0
//
// Bars of the phases of a step under each strategy, side by side, what passes the links of each machine, and the same as a trace for
// Perfetto or chrome://tracing.
"use strict";

const phases = [
  ["values", "values to replicas"],
  ["rows", "rows that are joined"],
  ["gradients", "gradients"],
  ["latencies", "latencies"],
];

const millis = (seconds) => `${(1e3 * seconds).toFixed(3)} ms`;

/// The phases that take time, one after the other: `{key, title, begin, seconds}`.
function timeline(strategy) {
  let begin = 0;
  const parts = [];
  for (const [key, title] of phases) {
    const seconds = strategy.phases[key];
    if (seconds > 0) parts.push({key, title, begin, seconds});
    begin += seconds;
  }
  return parts;
}

function bar(strategy, longest) {
  const percent = (seconds) => `${longest > 0 ? 100 * seconds / longest : 0}%`;
  return make("div", {class: "bar", role: "img", "aria-label": timeline(strategy).map(({title, seconds}) => `${title} ${millis(seconds)}`).join(", ") || "nothing"},
    timeline(strategy).map(({key, title, seconds}) => {
      const part = make("span", {class: key, title: `${title}: ${millis(seconds)}`});
      part.style.width = percent(seconds);
      return part;
    }));
}

/// A table of strategies, the fastest first, and the links of one when it is opened.
function stepTable({strategy: chosen, strategies}) {
  const longest = Math.max(...strategies.map(({seconds}) => seconds));
  return new Table({
    caption: "A step under each strategy: what is sent, without what replicas compute. Open one for what passes each link",
    rows: strategies,
    columns: [
      {title: "Strategy", cell: (each) => each.strategy === chosen ? `${each.strategy} (this graph)` : each.strategy, key: (each) => each.strategy},
      {title: "Step", number: true, cell: (each) => millis(each.seconds), key: (each) => each.seconds},
      {title: "Phases", cell: (each) => bar(each, longest)},
    ],
    detail: (each) => make("table", {}, make("caption", {}, "What passes the links of each machine in a step"),
      make("thead", {}, make("tr", {}, ["Machine", "To the network", "From the network", "Inside"].map((title, index) =>
        make("th", {scope: "col", class: index > 0 && "number"}, title)))),
      make("tbody", {}, each.machines.map((its) => make("tr", {}, make("th", {scope: "row"}, code(its.address)),
        ["out", "in", "inside"].map((link) => make("td", {class: "number"}, bytesText(its[link]))))))),
  });
}

const stepLegend = () => make("ul", {class: "legend"}, phases.map(([key, title]) => make("li", {}, make("span", {class: `swatch ${key}`}), title)));

/// The timelines as JSON in the trace event format: a thread for each strategy, in microseconds. Perfetto makes nanoseconds of them, some of
/// its versions by cutting off what is left, and drops what overlaps what was before it on its thread. So these are whole nanoseconds, one
/// begins where another ends, and a quarter of one keeps each from becoming the one before.
function trace({strategies}) {
  const nanos = (seconds) => Math.round(1e9 * seconds);
  const micros = (its) => (its + 0.25) / 1e3;
  const event = ({title, begin, seconds}) => {
    const first = nanos(begin);
    return {name: title, cat: "step", ph: "X", ts: micros(first), dur: micros(nanos(begin + seconds) - first)};
  };
  const traceEvents = strategies.flatMap((each, index) => [
    {name: "thread_name", ph: "M", pid: 1, tid: index + 1, args: {name: each.strategy}},
    {name: "thread_sort_index", ph: "M", pid: 1, tid: index + 1, args: {sort_index: index}},
    ...timeline(each).map((its) => ({...event(its), pid: 1, tid: index + 1})),
  ]);
  return JSON.stringify({traceEvents, displayTimeUnit: "ms"});
}
