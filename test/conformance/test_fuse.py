# SPDX-License-Identifier: Apache-2.0
"""Reductions in buckets: the step of the single device, in fewer exchanges."""

import numpy as np
import pytest
import tensorflow as tf
from harness import Options, assert_all_close, export, reference, rewrite, run_steps
from models import Spec
