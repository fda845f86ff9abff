"""lib/ops/OpTable.inc and proto/ are what their generators write, and say what TensorFlow says."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

tf = pytest.importorskip("tensorflow")
from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tools" / "scripts"
TABLE = ROOT / "lib" / "ops" / "OpTable.inc"
PROTO = ROOT / "proto"
GENERATED_PROTOS = ("tensorflow", "xla")  # proto/ may hold other messages, too


def same_version():
    return re.search(r"of TensorFlow (\S+)\. Do not edit", TABLE.read_text()).group(1) == tf.__version__


needs_same_version = pytest.mark.skipif(not same_version(), reason="generated from another version of TensorFlow")


def generate(script, out):
    subprocess.run([sys.executable, SCRIPTS / script, out], check=True)


def proto_files(root):
    return {str(path.relative_to(root)): path.read_bytes() for top in GENERATED_PROTOS for path in (root / top).rglob("*.proto")}


@needs_same_version
def test_op_table_is_up_to_date(tmp_path):
    generate("gen_op_table.py", tmp_path)
    assert (tmp_path / "OpTable.inc").read_bytes() == TABLE.read_bytes()
    assert (tmp_path / "Ops.h").read_bytes() == TABLE.with_name("Ops.h").read_bytes()


@needs_same_version
def test_protos_are_up_to_date(tmp_path):
    generate("gen_protos.py", tmp_path)
    assert proto_files(tmp_path) == proto_files(PROTO)


def normalize(message):
    """Drops from a message descriptor what proto/ does not keep, and the order of nested messages."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        normalize(nested)
    nested = sorted(message.nested_type, key=lambda item: item.name)
    del message.nested_type[:]
    message.nested_type.extend(nested)


@needs_same_version
@pytest.mark.skipif(shutil.which("protoc") is None, reason="no protoc")
def test_protos_mean_what_tensorflow_means(tmp_path):
    out = tmp_path / "set.pb"
    subprocess.run(["protoc", f"-I{PROTO}", f"--descriptor_set_out={out}", *sorted(proto_files(PROTO))], check=True)
    # saved_model.proto and queue_runner.proto register every other file when they are imported.
    for module in ("saved_model", "queue_runner", "control_flow"):
        __import__(f"tensorflow.core.protobuf.{module}_pb2")
    for ours in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        theirs = descriptor_pb2.FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(ours.name).CopyToProto(theirs)
        for file in (ours, theirs):
            file.ClearField("options")
            file.syntax = file.syntax or "proto2"
            for message in file.message_type:
                normalize(message)
        assert ours == theirs, ours.name


def rows(section):
    """The rows of a section, as lists of the text of their cells without quotes."""
    found = re.findall(rf"^GRAFT_{section}\((.*)\)$", TABLE.read_text(), re.MULTILINE)
    return [[cell.strip('"') for cell in row.split(", ")] for row in found]


@pytest.fixture(scope="module", name="updates")
def fixture_updates():
    return {name: (int(num_vars), int(grad), int(indices), kind) for name, num_vars, grad, indices, kind in rows("UPDATE")}


@pytest.mark.parametrize(
    "op, expected",
    {
        "ApplyAdagradV2": (2, 4, -1, "Apply"),
        "ApplyAdam": (3, 9, -1, "Apply"),
        "ApplyFtrlV2": (3, 3, -1, "Apply"),
        "ApplyGradientDescent": (1, 2, -1, "Apply"),
        "Assign": (1, 1, -1, "Assign"),
        "AssignSub": (1, 1, -1, "AssignAdd"),
        "AssignVariableOp": (1, 1, -1, "Assign"),
        "CountUpTo": (1, -1, -1, "Count"),
        "ResourceApplyAdaMax": (3, 8, -1, "Apply"),
        "ResourceApplyAdamWithAmsgrad": (4, 10, -1, "Apply"),
        "ResourceApplyAddSign": (2, 6, -1, "Apply"),
        "ResourceApplyKerasMomentum": (2, 3, -1, "Apply"),
        "ResourceScatterNdUpdate": (1, 2, 1, "Scatter"),
        "ResourceSparseApplyAdagradDA": (3, 3, 4, "Apply"),
        "ResourceSparseApplyAdagradV2": (2, 4, 5, "Apply"),
        "ResourceStridedSliceAssign": (1, 4, -1, "StridedSliceAssign"),
        "ScatterSub": (1, 2, 1, "Scatter"),
        "SparseApplyCenteredRMSProp": (4, 8, 9, "Apply"),
        "SparseApplyMomentum": (2, 3, 4, "Apply"),
    }.items(),
)
def test_update(updates, op, expected):
    assert updates[op] == expected


def test_every_optimizer_op_is_an_update(updates):
    optimizer_op = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]\w*")
    names = {row[0] for row in rows("OP") if optimizer_op.fullmatch(row[0])}
    assert names == {name for name, update in updates.items() if update[3] == "Apply"}


@pytest.mark.parametrize(
    "op", ["LookupTableInsertV2", "QueueEnqueueV2", "RngSkip", "StackPushV2", "StatefulUniform", "TensorArrayScatterV3", "TensorScatterAdd"]
)
def test_no_update(updates, op):
    assert op not in updates


def test_reads():
    reads = dict(rows("READ"))
    assert reads.keys() >= {
        "IsVariableInitialized",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarIsInitializedOp",
        "VariableShape",
    }
    assert set(reads.values()) == {"0"}


def test_names_are_sorted_and_indices_run():
    ops = rows("OP")
    names = [row[0].encode() for row in ops]
    assert names == sorted(set(names))
    first_arg = first_attr = 0
    for _, arg, inputs, outputs, attr, attrs, _, _ in ops:
        assert (int(arg), int(attr)) == (first_arg, first_attr)
        first_arg += int(inputs) + int(outputs)
        first_attr += int(attrs)
    assert (first_arg, first_attr) == (len(rows("ARG")), len(rows("ATTR")))
