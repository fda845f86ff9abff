# SPDX-License-Identifier: Apache-2.0
"""Writes the graphs of all models into a folder, for `tools/scripts/same-output --models=DIR`.

    build/venv/bin/python test/conformance/export_models.py DIR

A file is named after the module and the model. Models of `models.py` are there with resource and with ref variables, and
as a GraphDef, which has no collections; one is a SavedModel, too. Those of `models_functions.py` are there with functions
and as version 1 has them. NAME.flags has the options that a model needs, one a line. Two exports differ in the order
of maps, so both binaries that are compared have to read the same one.
"""

import os
import shutil
import sys

import models
import models_autodist
import models_batches
import models_bn
import models_functions
import models_loops
import models_habits
import models_random
import test_sampled
from models import Spec
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework.meta_graph import read_meta_graph_file


def write(directory, module, name, fill, flags=(), kind="resource"):
    stem = os.path.join(directory, f"{module}-{name}")
    models_habits.build(Spec(name, kind), fill).write(stem + ".meta")
    if flags:
        with open(stem + ".flags", "w", encoding="utf-8") as file:
            file.write("".join(f"{flag}\n" for flag in flags))


def saved_model(directory, name):
    saved = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    saved.meta_graphs.append(read_meta_graph_file(os.path.join(directory, f"models-{name}-resource.meta")))
    saved.meta_graphs[0].meta_info_def.tags.append("train")
    folder = os.path.join(directory, f"models-{name}-saved")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
        file.write(saved.SerializeToString(deterministic=True))


def export(directory):
    for name in models.MODELS:
        for kind, suffix in (("resource", ".meta"), ("ref", ".meta"), ("resource", ".pb")):
            models.build(Spec(name, kind)).write(os.path.join(directory, f"models-{name}-{kind}{suffix}"))
    saved_model(directory, "mlp_adam")
    for module, table in (
        ("more", models_habits.HABITS),
        ("loops", models_loops.LOOPS),
        ("batches", models_batches.SOURCES),
        ("bn", {**models_bn.FUSED, **models_bn.EXACT}),
    ):
        for name, model in table.items():
            write(directory, module, name, model.build, model.flags)
    for name, (fill, *_) in models_loops.UNPROVED.items():
        write(directory, "unproved", name, fill)
    for name, fill in {**models_random.ROWS, **models_random.ONE}.items():
        write(directory, "random", name, fill)
    for sampler in test_sampled.SAMPLERS:
        write(directory, "sampled", sampler, test_sampled.sampled(sampler=sampler))
    for table in (models_functions.BRANCHES, models_functions.FUNCTIONS, models_functions.LOOPS):
        for name, model in table.items():
            for module, functional in (("functions1", False), ("functions2", True)):
                with models_functions.form(functional):
                    write(directory, module, name, models_functions.importable(model.build))
    for name, case in models_autodist.CASES.items():
        for kind in ("resource", "ref"):
            shutil.copyfile(case(kind).path, os.path.join(directory, f"autodist-{name}-{kind}.meta"))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    export(sys.argv[1])
    print(f"{sum(not name.endswith('.flags') for name in os.listdir(sys.argv[1]))} graphs in {sys.argv[1]}")


if __name__ == "__main__":
    main()
