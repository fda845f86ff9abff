# SPDX-License-Identifier: Apache-2.0
"""Every rule of lib/infer/rules against TensorFlow, by enumeration.

    operands.py  operands of every type that a rule may meet
    table.py     what the ops take, a line for those that need more than their signature says
    claims.py    what `graft-opt --emit=types` claims, and whether the tensors of the replicas keep it
    driver.py    many small instances in one graph: which run, which are refused, which claims hold
    no_rows.py   which kernels do not bear no rows: it writes lib/ops/NoRows.inc
    __main__.py  the command line; `python -m exhaust --help` in test/conformance
"""
