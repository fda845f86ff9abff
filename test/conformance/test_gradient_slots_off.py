# SPDX-License-Identifier: Apache-2.0
"""graft finds the gradient, not the optimizer: without the op table's gradient slots every result is the same."""

import cases
import pytest
from harness import Rewritten

CASES = cases.matrix(False, strength=2, extra=("--no-gradient-slots",), replicas=[2, 4])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps(case):
    with Rewritten(case.spec, case.options) as session:
        session.check_steps()
        session.check_diagnostics()
