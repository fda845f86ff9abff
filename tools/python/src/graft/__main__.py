# SPDX-License-Identifier: Apache-2.0
"""`python -m graft` is graft-opt."""

from graft._programs import graft_opt

graft_opt()
