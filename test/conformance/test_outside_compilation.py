# SPDX-License-Identifier: Apache-2.0
"""Is what mark-outside-compilation marks what `tf.compat.v1.tpu.outside_compilation` marks?

Each case of tpu_cases_host.py is built by TensorFlow twice, as a TPU computation with and without its host ops. graft marks
the second, and the results must be the same graph up to names (tpu_compare.py).
"""

import os
import re

import harness
import pytest
import tensorflow as tf
import tpu_cases_host  # noqa: F401  registers its cases
from tpu_build import CASES, HOST
from tpu_compare import difference

MARK = re.compile(r"mark-outside-compilation\{[^}]*\}")
MARKED = [name for name, case in CASES.items() if MARK.search(case.passes)]


def run(graph_def, passes, directory, *arguments):
    source, out = os.path.join(directory, "in.pb"), os.path.join(directory, "out.pb")
    with open(source, "wb") as file:
        file.write(graph_def.SerializeToString())
    harness.run_graft([source, "-o", out, "--passes=" + passes, *arguments])
    result = tf.compat.v1.GraphDef()
    with open(out, "rb") as file:
        result.ParseFromString(file.read())
    return result


@pytest.mark.parametrize("name", MARKED)
def test_same_marks_as_tensorflow(name, tmp_path):
    case = CASES[name]
    want, bare = case.graph(tpu=True), case.graph(tpu=True, marks=False)
    assert difference(want, bare) is not None, "TensorFlow marks nothing"
    result = run(bare, ",".join(MARK.findall(case.pipeline())), str(tmp_path))
    found = difference(want, result)
    assert found is None, found


@pytest.mark.parametrize("name", ["host_op", "gradient_of_a_host_op", "host_ops_in_a_branch_and_outside_it"])
def test_marks_before_there_is_a_computation(name, tmp_path):
    """A plain graph gets the same ids, on the same ops."""
    case = CASES[name]
    result = run(case.graph(tpu=False), ",".join(MARK.findall(case.pipeline())), str(tmp_path))
    assert ids(result) == ids(case.graph(tpu=True))


def ids(graph):
    found = [node for node in graph.node if HOST in node.attr]
    bodies = [node for function in graph.library.function for node in function.node_def if HOST in node.attr]
    return sorted((node.name, node.attr[HOST].s.decode()) for node in found + bodies)
