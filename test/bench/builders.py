#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of graft with every strategy builder, against what one would run instead; ratios of one run.

    python test/bench/builders.py [--graph FILE.meta --replicas N] [--autodist PYTHON]

    loop       a loop over Python's NodeDef messages that only copies: prefix, device, colocation. Both its whole
               process and its own work, without starting Python and importing TensorFlow, against graft's whole process
    autodist   AutoDist's own transformation of the same graph, in a PYTHON (3.7) that has TensorFlow 1.15 and AutoDist
               (petuum/autodist, its protos compiled); its transformation alone is counted.
    parts      graft's time by the number of parts of each variable, which must grow linearly at most

The graphs: a deep MLP of 4,000 nodes on 2 replicas, one of 30,000 nodes on 8. Each figure is the median of three runs.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFT = os.environ.get("GRAFT_OPT") or os.path.join(ROOT, "build", "release", "bin", "graft-opt")
BUILDERS = [
    "ps",
    "ps-load-balancing",
    "partitioned-ps",
    "uneven-partitioned-ps",
    "all-reduce",
    "partitioned-all-reduce",
    "random-axis-partition-all-reduce",
    "parallax",
    "auto",
]

MODEL = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow.compat.v1 as v1
def fill(layers, width=16, batch=16):
    h = x = v1.placeholder(v1.float32, [batch, width], "x")
    y = v1.placeholder(v1.float32, [batch, width], "y")
    for i in range(layers):
        w = v1.get_variable("w%d" % i, [width, width], initializer=v1.glorot_uniform_initializer(seed=i))
        b = v1.get_variable("b%d" % i, [width], initializer=v1.zeros_initializer())
        h = v1.nn.tanh(v1.matmul(h, w) + b)
    loss = v1.reduce_mean(v1.square(h - y))
    return v1.train.GradientDescentOptimizer(0.01).minimize(loss)
"""

EXPORT = (
    MODEL
    + """
v1.disable_v2_behavior()
with v1.Graph().as_default():
    fill(int(sys.argv[1]))
    v1.global_variables_initializer()
    v1.train.Saver()
    v1.train.export_meta_graph(sys.argv[2])
"""
)

LOOP = """
import os, sys, json, resource
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.framework import graph_pb2
def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime
start = cpu()
meta = meta_graph_pb2.MetaGraphDef.FromString(open(sys.argv[1], "rb").read())
out = graph_pb2.GraphDef()
for r in range(int(sys.argv[3])):
    prefix = "replica_%d/" % r
    for node in meta.graph_def.node:
        copy = out.node.add()
        copy.CopyFrom(node)
        copy.name = prefix + node.name
        copy.device = "/device:CPU:%d" % r
        inputs = ["^" + prefix + i[1:] if i[0] == "^" else prefix + i for i in node.input]
        del copy.input[:]
        copy.input.extend(inputs)
        if "_class" in copy.attr:
            s = copy.attr["_class"].list.s
            s[:] = [b"loc:@" + prefix.encode() + c[5:] if c.startswith(b"loc:@") else c for c in s]
        for key in ("frame_name", "shared_name"):
            if key in copy.attr and copy.attr[key].s:
                copy.attr[key].s = prefix.encode() + copy.attr[key].s
meta.graph_def.CopyFrom(out)
open(sys.argv[2], "wb").write(meta.SerializeToString())
print(json.dumps(cpu() - start))
"""

AUTODIST = (
    MODEL
    + """
import json, resource, tempfile
import tensorflow as tf
from autodist import AutoDist
from autodist import strategy as S
from autodist.kernel.graph_transformer import GraphTransformer
def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime
spec = os.path.join(tempfile.mkdtemp(), "resource_spec.yml")
open(spec, "w").write("nodes:\\n  - address: localhost\\n    cpus: [0, 1]\\n    chief: true\\n")
ad = AutoDist(spec, {"all-reduce": lambda: S.AllReduce(128), "ps": S.PS}[sys.argv[2]]())
with tf.Graph().as_default(), ad.scope():
    fill(int(sys.argv[1]))
    v1.global_variables_initializer()
    start = cpu()
    compiled = ad._compile_strategy(ad._build_or_load_strategy())
    GraphTransformer(compiled_strategy=compiled, cluster=ad._cluster, graph_item=ad._original_graph_item).transform()
    print(json.dumps(cpu() - start), flush=True)
os._exit(0)
"""
)


def script(text, folder, name):
    path = os.path.join(folder, name + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def cpu(command):
    """Seconds of CPU of a process, and what it prints last, a number: the medians of three."""
    seconds, printed = [], []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        printed.append(json.loads((run.stdout.strip() or "0").splitlines()[-1]))
    return statistics.median(seconds), statistics.median(printed)


def graft(source, out, replicas, *flags):
    return cpu([GRAFT, source, "-o", out, f"--replicas={replicas}", "--device-type=CPU", *flags])[0]


def against_loop(source, replicas, folder, label):
    out = os.path.join(folder, "out.meta")
    whole, work = cpu([sys.executable, script(LOOP, folder, "loop"), source, out, str(replicas)])
    for builder in BUILDERS:
        # Matrices of a kilobyte are cut, too.
        own = graft(source, out, replicas, f"--strategy={builder}", "--min-shard-size=64")
        print(
            f"{label} x{replicas}, {builder}: CPU of graft / of a Python NodeDef loop: 1/{whole / own:.0f}, "
            f"1/{work / own:.0f} of its own work",
            flush=True,
        )


def against_autodist(source, layers, python, folder, label):
    out = os.path.join(folder, "out.meta")
    for builder in ("all-reduce", "ps"):
        _, theirs = cpu([python, script(AUTODIST, folder, "transform"), str(layers), builder])
        own = graft(source, out, 2, f"--strategy={builder}")
        print(f"{label} x2, {builder}: CPU of graft / of AutoDist's transformation: 1/{theirs / own:.0f}", flush=True)


def by_parts(source, layers, folder):
    """Cutting alone, of all matrices along axis 0."""
    times = {}
    for parts in (2, 4, 8, 16):
        cuts = ";".join(f"w{i}=0/{parts}" for i in range(layers))
        pipeline = f"partition-variables{{partition='{cuts}'}}"
        times[parts] = cpu([GRAFT, source, "-o", os.path.join(folder, "out.meta"), f"--passes={pipeline}"])[0]
    text = ", ".join(f"{parts}: {times[parts] / times[2]:.1f}" for parts in times)
    print(f"CPU of cutting {layers} variables into 2, 4, 8, 16 parts, over that of 2: {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", help="another graph, against the loop only")
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--autodist", metavar="PYTHON", help="also measure AutoDist, in this Python")
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    if options.graph:
        against_loop(options.graph, options.replicas, folder, os.path.basename(options.graph))
        return 0
    for layers, replicas, label in ((80, 2, "4,000 nodes"), (620, 8, "30,000 nodes")):
        source = os.path.join(folder, f"mlp{layers}.meta")
        subprocess.run([sys.executable, script(EXPORT, folder, "export"), str(layers), source], check=True,
                       stderr=subprocess.DEVNULL)
        if options.autodist and replicas == 2:
            against_autodist(source, layers, options.autodist, folder, label)
        against_loop(source, replicas, folder, label)
    by_parts(source, 620, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
