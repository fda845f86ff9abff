# SPDX-License-Identifier: Apache-2.0
"""`python -m graft` is graft-opt; `python -m graft check` is graft.check."""

import sys

from graft._check import main
from graft._programs import graft_opt

if sys.argv[1:2] == ["check"]:
    sys.exit(main(sys.argv[2:]))
graft_opt()
