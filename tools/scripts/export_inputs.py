#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the training graphs in test/inputs/ with TensorFlow (tensorflow-cpu 2.21).

    cnn_bn.meta       a residual network with batch norm, Momentum, penalties and a decaying rate; resource variables
    mlp.pb            two layers and Adam, a GraphDef
    mlp.pbtxt         the same as text
    mlp_ref.meta      the same with ref variables, a MetaGraphDef

The graphs are those of test/conformance/models.py, so the conformance tier knows what they compute.
"""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))

import models

INPUTS = {
    "cnn_bn.meta": models.Spec("resnet"),
    "mlp.pb": models.Spec("mlp_adam"),
    "mlp.pbtxt": models.Spec("mlp_adam"),
    "mlp_ref.meta": models.Spec("mlp_adam", kind="ref"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "test", "inputs"), help="default: test/inputs")
    out = parser.parse_args().out
    os.makedirs(out, exist_ok=True)
    for name, spec in INPUTS.items():
        built = models.build(spec)
        path = built.write(os.path.join(out, name))
        print(f"{path}: {len(built.graph.get_operations())} nodes, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
