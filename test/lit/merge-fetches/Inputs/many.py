# SPDX-License-Identifier: Apache-2.0
"""many.py COUNT: a loss after so many ops in a row, none of which reads a variable."""

import sys

count = int(sys.argv[1])
print('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }')
print('  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }')
last = "x"
for i in range(count):
    print(f'node {{ name: "h{i}" op: "Tanh" input: "{last}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}')
    last = f"h{i}"
print('node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }')
print('  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 0 int_val: 1 } } } }')
print(f'node {{ name: "loss" op: "Mean" input: "{last}" input: "axes" attr {{ key: "T" value {{ type: DT_FLOAT }} }}')
print('  attr { key: "Tidx" value { type: DT_INT32 } } }')
