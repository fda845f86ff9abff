# SPDX-License-Identifier: Apache-2.0
"""graft.load: a graph into a session, with what a training loop needs."""

import os
import re
from typing import Any, Dict, Optional, Union

from graft._rewrite import Rewrite

# How graph files name the devices of one process.
CPU = re.compile(r"/device:CPU:(\d+)$", re.IGNORECASE)


class Loaded:
    """A graph in a session. As a context manager it closes the session."""

    def __init__(self, graph: Any, session: Any, init_op: Any, train_op: Any, saver: Any, feeds: Dict[str, Any]):
        self.graph = graph
        """The tf.Graph."""
        self.session = session
        """A tf.compat.v1.Session with as many CPU devices as the graph names."""
        self.init_op = init_op
        """Runs all initializers, those of copies too; not needed before `saver.restore`."""
        self.train_op = train_op
        """The op in the collection `train_op`, where optimizers put it; a list if the collection has several, None if none."""
        self.saver = saver
        """A tf.compat.v1.train.Saver of the checkpoints of the input; None if the input has none."""
        self.feeds = feeds
        """The placeholders by their names: `feeds["x"]` is the tensor `x:0`."""

    def __enter__(self) -> "Loaded":
        return self

    def __exit__(self, *_: Any) -> None:
        self.session.close()

    def tensor(self, name: str) -> Any:
        """The tensor `name`, `loss` or `loss:0`. KeyError if there is none."""
        return self.graph.get_tensor_by_name(name if ":" in name else name + ":0")


NO_COLLECTIONS = (
    "graft.load takes a MetaGraphDef; a GraphDef has neither collections nor a saver: import it with "
    "tf.import_graph_def(graph_def, name='') in a session of your own"
)


def _read(path: str) -> Any:
    """The MetaGraphDef in a file, binary or text."""
    import tensorflow.compat.v1 as tf
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    if os.path.isdir(path) or os.path.basename(path).startswith("saved_model.pb"):
        raise ValueError(
            f"{path}: is a SavedModel; load the functions with tf.saved_model.load, or the graph with tf.compat.v1.saved_model.load"
        )
    meta = tf.MetaGraphDef()
    with open(path, "rb") as file:
        data = file.read()
    try:
        if path.endswith(".pbtxt"):
            text_format.Parse(data.decode("utf-8"), meta)
        else:
            meta.ParseFromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is no MetaGraphDef ({str(error).splitlines()[0]}); " + NO_COLLECTIONS) from None
    if not meta.graph_def.node:
        raise ValueError(f"{path}: is no MetaGraphDef with a graph; " + NO_COLLECTIONS)
    return meta


def load(meta: Union[Rewrite, str, "os.PathLike[str]", Any], session: Optional[Any] = None, config: Optional[Any] = None) -> Loaded:
    """Imports a MetaGraphDef, as `rewrite` gives it, into a session.

    Args:
      meta: A Rewrite, the path of a `.meta` file, or a MetaGraphDef.
      session: A tf.compat.v1.Session to import into; without one a graph and a session are made, in this process.
      config: The ConfigProto of the session that is made. Its device_count of CPUs is raised to what the graph names.

    Returns:
      A Loaded.

    Raises:
      ImportError: There is no TensorFlow.
      ValueError: `meta` is no MetaGraphDef: a GraphDef has no collections and no saver.
    """
    import tensorflow.compat.v1 as tf

    if isinstance(meta, Rewrite):
        if meta.kind != "metagraph":
            raise ValueError(f"graft.load takes a MetaGraphDef, and this is a {meta.kind}")
        meta = meta.meta_graph
    elif isinstance(meta, (str, os.PathLike)):
        meta = _read(os.fspath(meta))
    elif type(meta).__name__ == "GraphDef":
        raise ValueError(NO_COLLECTIONS)
    graph = session.graph if session is not None else tf.Graph()
    with graph.as_default():
        saver = tf.train.import_meta_graph(meta)
        init_op = tf.group(
            tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer(), name="graft_load/init"
        )
    if session is None:
        config = config or tf.ConfigProto()
        found = (CPU.search(node.device) for node in meta.graph_def.node)
        cpus = max((int(match.group(1)) + 1 for match in found if match), default=1)
        if config.device_count["CPU"] < cpus:
            config.device_count["CPU"] = cpus
        session = tf.Session(graph=graph, config=config)
    train_ops = graph.get_collection(tf.GraphKeys.TRAIN_OP)
    feeds = {op.name: op.outputs[0] for op in graph.get_operations() if op.type in ("Placeholder", "PlaceholderWithDefault")}
    # The name of a checkpoint is fed by the saver.
    if saver is not None and saver.saver_def.filename_tensor_name:
        file_name = graph.get_tensor_by_name(saver.saver_def.filename_tensor_name).op
        for op in (file_name, *(source.op for source in file_name.inputs)):
            feeds.pop(op.name, None)
    return Loaded(graph, session, init_op, train_ops[0] if len(train_ops) == 1 else train_ops or None, saver, feeds)
