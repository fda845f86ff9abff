# SPDX-License-Identifier: Apache-2.0
"""Has an Estimator of TensorFlow 1.15 export a SavedModel for serving; run by saved_models.py with a Python of its own.

    export_estimator.py FOLDER
"""

import os
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf


def model(features, labels, mode):
    x = features["x"]
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1))
    y = tf.tanh(tf.matmul(x, w))
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"predict": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(y - labels))
    train = tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    x, y = np.ones([8, 4], np.float32), np.ones([8, 1], np.float32)
    return tf.data.Dataset.from_tensors(({"x": x}, y))


def serving():
    x = tf.placeholder(tf.float32, [None, 4], "x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


tf.logging.set_verbosity(tf.logging.ERROR)
scratch = tempfile.mkdtemp()
estimator = tf.estimator.Estimator(model, os.path.join(scratch, "model"))
estimator.train(data, steps=1)
made = estimator.export_saved_model(os.path.join(scratch, "export"), serving)
shutil.move(made.decode(), sys.argv[1])
shutil.rmtree(scratch)
