# SPDX-License-Identifier: Apache-2.0
"""Exports a model and trains a graph file in the TensorFlow of this interpreter. Started by test_tf1.py, for 1.15.

Reads a job as JSON on stdin: model, kind, graph, replicas, batches (x0, y0, x1, ...), out, and perhaps `export`: the
files to write first, with the number of towers of each. Writes the losses and, after the last step, the variables.
"""

import json
import sys

import models
import numpy as np
from models import tf1


def main():
    job = json.load(sys.stdin)
    for path, towers in job.get("export", {}).items():
        models.build(models.Spec(job["model"], job["kind"]), towers).write(path)
    batches = np.load(job["batches"])
    config = tf1.ConfigProto(device_count={"CPU": job["replicas"]}, allow_soft_placement=False)
    options = tf1.RunOptions(timeout_in_ms=60000)
    with tf1.Session(config=config) as session:
        tf1.train.import_meta_graph(job["graph"])
        session.run("init", options=options)
        arrays = {}
        for i in range(len(batches.files) // 2):
            feeds = {"x:0": batches["x%d" % i], "y:0": batches["y%d" % i]}
            arrays["loss of step %d" % (i + 1)] = session.run(["loss:0", "train_op"], feeds, options=options)[0]
        reads = {v.op.name: v.to_proto().snapshot_name for v in tf1.global_variables()}
        arrays.update(session.run(reads, options=options))
    np.savez(job["out"], **arrays)


if __name__ == "__main__":
    main()
