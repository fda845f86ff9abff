# SPDX-License-Identifier: Apache-2.0
"""Options of the conformance tier, and the table that a full run writes."""

import collections
import os
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "scripts"))

import cases
import harness
import pytest
import summary
from mutation_score import Score

# Each of these runs alone, by its name. The first two fork, and a child of a process in which TensorFlow has threads may wait
# for these for ever. The others have several servers in one process, whose sessions waited for ever behind tests of other
# files. tools/check has the same list.
collect_ignore = ["test_damage.py", "test_exhaust.py", "test_between_graph.py", "test_late_reads.py", "test_row_variables.py"]

RESULTS = collections.defaultdict(lambda: [0, 0])  # a case's text: checks passed, checks made
SCORE = Score()  # of all mutants


def pytest_addoption(parser):
    group = parser.getgroup("graft conformance")
    group.addoption("--full", action="store_true", help="run the whole matrix and write the table of results")
    group.addoption(
        "--conformance-table",
        default=os.path.join(harness.ROOT, "docs", "Conformance.md"),
        help="where --full writes its table (default: docs/Conformance.md)",
    )
    group.addoption(
        "--exhaust-seed",
        type=int,
        default=5,
        help="of the recipes that test_exhaust.py draws",
    )
    group.addoption(
        "--fifth",
        type=int,
        choices=range(1, 6),
        help="of the cases of each test with many cases, run one fifth only",
    )


def pytest_report_header(config):
    found = "" if os.path.exists(harness.graft_opt()) else " (missing: every test that needs it fails)"
    return f"graft-opt: {harness.graft_opt()}{found}, --exhaust-seed={config.getoption('--exhaust-seed')}"


MANY_CASES = 6


def pytest_collection_modifyitems(config, items):
    """With --fifth, keeps a fifth of the cases of each test that has many, and all cases of other tests."""
    fifth = config.getoption("--fifth")
    if not fifth:
        return
    cases_of = collections.defaultdict(list)
    for item in items:
        cases_of[item.parent.nodeid, getattr(item, "originalname", item.name)].append(item)
    dropped = set()
    for group in cases_of.values():
        if len(group) >= MANY_CASES:
            kept = {item for item in group if zlib.crc32(item.name.encode()) % 5 == fifth - 1}
            dropped.update(set(group) - (kept or {group[0]}))
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=list(dropped))


@pytest.fixture(autouse=True)
def imported():
    """Status 0: TensorFlow imports the written graph. A test that runs a graph has imported it."""
    harness.WRITTEN.clear()
    yield
    harness.load_written()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" or report.failed:
        report.user_properties.append(("noted", summary.taken()))
    return report


def pytest_runtest_logreport(report):
    """In the process that the report goes to: with -n, another one than where the test ran."""
    said = dict(report.user_properties)
    if report.when == "call" or report.failed:
        summary.finish(said.get("noted", []), report.passed, hasattr(report, "wasxfail"))
        SCORE.add_rows(said.get("mutants", []))
    case = said.get("case")
    if case and (report.when == "call" or report.failed):
        RESULTS[case][0] += report.passed
        RESULTS[case][1] += 1


def pytest_sessionfinish(session, exitstatus):
    config = session.config
    if config.getoption("--full") and set(RESULTS) == {str(case) for case in cases.matrix(full=True)}:
        cases.write_table(config.getoption("--conformance-table"), RESULTS)


def pytest_terminal_summary(terminalreporter):
    if summary.RESULTS:
        terminalreporter.section("models, strategies, replicas")
        for line in summary.table():
            terminalreporter.write_line(line)
    if SCORE.counts:
        terminalreporter.section("mutation score")
        terminalreporter.write_line(SCORE.table())
