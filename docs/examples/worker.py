# SPDX-License-Identifier: Apache-2.0
"""Trains as one worker of the cluster that TF_CONFIG describes: worker.py GRAPH."""

import json
import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
index, workers = config["task"]["index"], len(config["cluster"]["worker"])
settings = tf.ConfigProto()
settings.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
server = tf.train.Server(config["cluster"], job_name="worker", task_index=index, config=settings)
tf.train.import_meta_graph(sys.argv[1])
options = tf.RunOptions(timeout_in_ms=60000)

# The global batch, of which this worker is fed its rows.
rows = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
mine = slice(index * 8 // workers, (index + 1) * 8 // workers)
feeds = {"x:0": rows[mine], "y:0": rows.sum(axis=1, keepdims=True)[mine]}
with tf.Session(server.target, config=tf.ConfigProto(device_filters=[f"/job:worker/task:{index}"])) as session:
    session.run("init", options=options)
    for step in range(3):
        loss, _ = session.run(["loss:0", "train"], feeds, options=options)
        print(f"step {step}: loss {loss:.5f}")
    # Its messages have to arrive before it ends.
    time.sleep(1)
