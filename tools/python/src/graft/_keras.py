# SPDX-License-Identifier: Apache-2.0
"""graft.keras_step: the training step of a compiled Keras model, as a SavedModel."""

import os
from typing import Any, Union


def _spec(tensor: Any) -> Any:
    """The shape and type of an input of the model, with any number of rows."""
    import tensorflow as tf

    return tf.TensorSpec([None, *list(tensor.shape)[1:]], tf.as_dtype(getattr(tensor.dtype, "name", tensor.dtype)))


def keras_step(model: Any, folder: Union[str, "os.PathLike[str]"], labels: Any = None, sample_weight: bool = False) -> str:
    """Writes the training step of a compiled Keras model to a SavedModel that `graft.rewrite` takes.

    The SavedModel has the functions `train(x, y)`, which makes a step and returns its loss and the metrics so far, `predict(x)`
    and `reset_metrics()`. Model, optimizer, loss and metrics are those of the compiled model, of Keras 3 or of tf_keras.

    Args:
      model: A compiled model (`model.compile(optimizer, loss)`) with known input shapes.
      folder: The folder to write.
      labels: The tf.TensorSpec of `y`, or a structure of them. Default: that of the outputs of the model.
      sample_weight: Add an argument of `train` with a weight for each row.

    Returns:
      `folder`.

    Raises:
      ValueError: The model is not compiled, its input shapes are not known, or it has a `train_step` of its own.
    """
    import tensorflow as tf

    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        raise ValueError("the model is not compiled; call model.compile(optimizer, loss) first")
    if not getattr(model, "built", False) or not getattr(model, "inputs", None):
        raise ValueError("the shapes of the inputs are not known; call model.build(shape), or give the model an Input layer")
    owner = next(each for each in type(model).__mro__ if "train_step" in vars(each))
    if owner.__module__.split(".")[0] not in ("keras", "tf_keras", "tensorflow"):
        raise ValueError(
            f"the class '{owner.__name__}' has a train_step of its own, which may compute another step; write the step as a "
            "tf.function with an input signature, and save it with tf.saved_model.save"
        )
    given = getattr(model, "input", None)
    if isinstance(given, dict):
        x_spec: Any = {name: _spec(tensor) for name, tensor in given.items()}
    else:
        inputs = [_spec(tensor) for tensor in model.inputs]
        x_spec = inputs[0] if len(inputs) == 1 else inputs
    if labels is None:
        outputs = [_spec(tensor) for tensor in model.outputs]
        labels = outputs[0] if len(outputs) == 1 else outputs
    if hasattr(optimizer, "build"):
        optimizer.build(model.trainable_variables)
    # A loss scale, as for float16: the optimizer of Keras 3 divides the gradients by it, that of tf_keras does not.
    scale = getattr(optimizer, "scale_loss", None) or getattr(optimizer, "get_scaled_loss", lambda loss: loss)
    unscale = getattr(optimizer, "get_unscaled_gradients", list)
    specs = [x_spec, labels]
    if sample_weight:
        specs.append(tf.TensorSpec([None], tf.float32))

    def step(x: Any, y: Any, weight: Any = None) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight)
            scaled = scale(loss)
        gradients = unscale(tape.gradient(scaled, model.trainable_variables))
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients([(gradient, variable) for gradient, variable in pairs if gradient is not None])
        return {**model.compute_metrics(x, y, predicted, weight), "loss": loss}

    def reset() -> None:
        for variable in _metric_variables(model):
            variable.assign(tf.zeros_like(variable))

    module = tf.Module()
    module.model = model
    module.optimizer = optimizer
    module.train = tf.function(step, input_signature=specs)
    module.predict = tf.function(lambda x: model(x, training=False), input_signature=[x_spec])
    module.reset_metrics = tf.function(reset, input_signature=[])
    # Keras makes the variables of metrics in the first step. TensorFlow must find them, and the seeds of Keras 3, to save them.
    module.train.get_concrete_function()
    module.kept = [*_values(model.variables), *_metric_variables(model)]
    folder = os.fspath(folder)
    tf.saved_model.save(module, folder)
    return folder


def _values(variables: Any) -> Any:
    """The variables as TensorFlow has them: in Keras 3, `value` is one. A vocabulary is a table and no variable."""
    import tensorflow as tf

    found = [each if isinstance(each, tf.Variable) else getattr(each, "value", None) for each in variables]
    return [each for each in found if isinstance(each, tf.Variable)]


def _metric_variables(model: Any) -> Any:
    return _values(variable for metric in model.metrics for variable in metric.variables)
