# SPDX-License-Identifier: Apache-2.0
"""One task of an Estimator that trains graphs of --mode=between-graph; docs/Workers.md starts it for each.

    estimator.py mlp.meta worker-%d.meta FOLDER STEPS
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

single, files, folder, steps = sys.argv[1:]
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
number, workers = 0 if job == "chief" else 1 + index, 1 + len(config["cluster"]["worker"])
rows = np.random.RandomState(0).rand(8, 4).astype(np.float32)
if job in ("chief", "worker"):
    rows = np.split(rows, workers)[number]


def batches():
    return tf.data.Dataset.from_tensors(({"x": rows}, rows.sum(1, keepdims=True))).repeat()


def model(features, labels, mode):
    # The evaluator has the graph of the single device.
    file = files % number if mode == tf.estimator.ModeKeys.TRAIN else single
    saver = tf.train.import_meta_graph(file, input_map={"x:0": features["x"], "y:0": labels})
    node = tf.get_default_graph().as_graph_element
    scaffold = tf.train.Scaffold(saver=saver)
    return tf.estimator.EstimatorSpec(mode, loss=node("loss:0"), train_op=node("train"), scaffold=scaffold)


class Imported(tf.estimator.Estimator):

    def _create_and_assert_global_step(self, graph):
        """It comes with the graph that is imported, which cannot have another beside it."""


class Stay(tf.train.SessionRunHook):

    def end(self, session):
        # Its messages have to arrive before it ends.
        time.sleep(1)


# Those that an Estimator chooses leave out the chief.
filters = ["/job:ps", "/job:chief", "/job:worker/task:%d" % index]
run = tf.estimator.RunConfig(
    model_dir=folder,
    save_checkpoints_steps=10,
    log_step_count_steps=None,
    session_config=tf.ConfigProto(device_filters=filters),
)
train = tf.estimator.TrainSpec(batches, max_steps=int(steps), hooks=[Stay()])
evaluate = tf.estimator.EvalSpec(batches, steps=1, start_delay_secs=0, throttle_secs=1)
tf.logging.set_verbosity(tf.logging.INFO)
tf.estimator.train_and_evaluate(Imported(model, config=run), train, evaluate)
