# SPDX-License-Identifier: Apache-2.0
"""The differential fuzzer (test/fuzz/differential) can fail: what is broken is found, told from what is not, and made small."""

import os
import subprocess
import sys

import harness
import pytest

FOLDER = os.path.join(harness.ROOT, "test", "fuzz", "differential")
sys.path.insert(0, FOLDER)

import genes  # noqa: E402
import minimize  # noqa: E402
import running  # noqa: E402

genes.register_all()

PLAIN = {"replicas": 2, "rows": 2, "static": False, "dtype": "float64", "variables": "resource", "sizes": "any",
         "source": "feed", "shuffle": False, "scope": "", "wild": False}  # fmt: skip
FLAGS = ["--replicas=2", "--device-type=CPU", "--reduction=add"]


def plan(*kinds, **head):
    listed = [(i, kind, 7 + i) for i, kind in enumerate(("rows_feed", *kinds))]
    return genes.Plan(1, {**PLAIN, **head}, listed)


def judge(a_plan, folder, flags=(), change=None, usual=FLAGS):
    built = genes.build(a_plan)
    reference = running.Reference(built)
    try:
        return running.judge(built, reference, [*usual, *flags], str(folder), change)
    finally:
        reference.close()


def no_reduction(graph_def):
    """The sum over the replicas is that of the first one, as often as there are replicas."""
    for node in graph_def.node:
        if node.op == "AddN" and len(node.input) == 2:
            node.input[1] = node.input[0]


def one_copy_more(graph_def):
    """One copy of a variable is updated with other numbers."""
    one_copy_more_of(graph_def, "replica_1/")


def one_copy_more_of(graph_def, prefix):
    nodes = {n.name: n for n in graph_def.node}
    for node in graph_def.node:
        if node.op.startswith("ResourceApply") and node.name.startswith(prefix):
            new = graph_def.node.add(name="more", op="Neg", input=[node.input[-1]], device=node.device)
            if "/" in node.input[-1] and nodes[node.input[-1].split(":")[0]].op == "Const":
                continue
            new.attr["T"].CopyFrom(node.attr["T"])
            node.input[-1] = "more"
            return


LAYERS = ("dense", "dense", "squares", "optimize")


@pytest.mark.parametrize("kind", ["resource", "ref"])
@pytest.mark.parametrize("batch", [False, True], ids=["unknown", "static"])
def test_what_is_right(tmp_path, kind, batch):
    assert judge(plan(*LAYERS, variables=kind, static=batch), tmp_path).kind == "ok"


def descend(change):
    """A plan whose update is a gradient descent, of the seeds at hand."""
    for seed in range(60):
        listed = plan(*LAYERS).genes
        number, kind, _ = listed[-1]
        found = genes.Plan(1, dict(PLAIN), [*listed[:-1], (number, kind, seed)])
        ops = {n.op for n in genes.build(found).meta.graph_def.node}
        if "ResourceApplyGradientDescent" in ops and "L2Loss" not in ops:
            return found
    raise AssertionError("no seed makes a gradient descent")


@pytest.mark.parametrize("change,kind", [(no_reduction, "wrong"), (one_copy_more, "drift")])
def test_what_is_broken_is_found(tmp_path, change, kind):
    broken = descend(change)
    assert judge(broken, tmp_path).kind == "ok"
    verdict = judge(broken, tmp_path, change=change)
    assert verdict.kind == kind, verdict


WORKERS = ["--strategy=ipu-multi-worker", "--workers=2", "--device-type=CPU", "--feed=x0_0=split"]


def test_workers(tmp_path):
    """The graphs of all workers beside each other: what is right is, a sum for a mean is found, and so is one worker that
    does something else."""

    def no_mean(graph_def):
        for node in graph_def.node:
            if node.op == "CollectiveReduce":
                node.attr["final_op"].s = b"Id"

    def one_worker(graph_def):
        if any(n.device.startswith("/job:worker/task:1/") for n in graph_def.node):
            one_copy_more_of(graph_def, "")

    right = descend(None)
    assert judge(right, tmp_path, usual=WORKERS).kind == "ok"
    assert judge(right, tmp_path, change=no_mean, usual=WORKERS).kind == "wrong"
    assert judge(right, tmp_path, change=one_worker, usual=WORKERS).kind == "drift"


def test_a_cluster(tmp_path):
    flags = ["--replicas=1", "--device-type=CPU", "--cluster={folder}/cluster.json"]
    assert judge(descend(None), tmp_path, usual=flags).kind == "ok"
    assert judge(descend(None), tmp_path, change=no_reduction, usual=flags).kind == "wrong"


def with_saver():
    listed = descend(None)
    seed = next(s for s in range(100) if genes.mix(s, "saver") < 0.15)
    return genes.Plan(seed, listed.head, listed.genes)


def test_checkpoints(tmp_path):
    """The checkpoint of each is read by the other: a copy that is not restored is found, and so is one number in the file."""

    def one_copy_less(graph_def):
        for node in graph_def.node:
            if node.op == "AssignVariableOp" and node.name.startswith("save/"):
                node.input[:] = [i for i in node.input if not i.startswith("^")]

    def other_numbers(graph_def):
        save = next(n for n in graph_def.node if n.op == "SaveV2")
        new = graph_def.node.add(name="more", op="Neg", input=[save.input[-1]], device=save.device)
        new.attr["T"].CopyFrom(next(n for n in graph_def.node if n.op == "ReadVariableOp").attr["dtype"])
        save.input[-1] = "more"

    assert genes.build(with_saver()).saver
    assert judge(with_saver(), tmp_path).kind == "ok"
    assert judge(with_saver(), tmp_path, change=one_copy_less).kind == "drift"
    verdict = judge(with_saver(), tmp_path, change=other_numbers)
    assert verdict.kind == "wrong" and "as it was saved" in verdict.detail, verdict


@pytest.mark.parametrize("source", ["iterator", "queue"])
def test_own_batches(tmp_path, source):
    """With a batch for each replica the step is that on all of them together."""
    for seed in range(60):  # a number that may be the size of the batch is refused
        own = plan(*LAYERS, source=source)
        own = genes.Plan(seed, own.head, [(i, kind, seed if kind == "squares" else 7 + i) for i, kind, _ in own.genes])
        verdict = judge(own, tmp_path, ["--batch=per-replica"])
        assert verdict.kind in ("ok", "warned", "refused"), verdict
        if verdict.kind == "ok":
            break
    assert judge(own, tmp_path, ["--batch=per-replica"], no_reduction).kind == "wrong"
    assert judge(own, tmp_path).kind == "ok"


def test_a_tensor_is_fed(tmp_path):
    """The rest of the step takes the value that a run feeds."""
    built = genes.build(descend(None))
    name = next(n for n, axis in built.axes.items() if axis == 0)
    flag = f"--feed={name.split(':')[0]}=split"
    reference = running.Reference(built)
    fed = running.reference_of(built, [flag], reference)
    after = [dict(r.rows)["after step 2"] for r in (reference, fed)]
    assert any(running.difference(after[0][v], after[1][v]) > 1e-6 for v in built.variables)
    fed.close(), reference.close()
    assert judge(descend(None), tmp_path, [flag]).kind == "ok"


def test_a_strategy_file_is_tried_again(tmp_path):
    flags = ["--strategy=partitioned-ps", "--min-shard-size=4", "--emit-strategy={folder}/strategy.pbtxt"]
    assert judge(descend(None), tmp_path, flags).kind == "ok"
    with open(tmp_path / "strategy.pbtxt", "a", encoding="utf-8") as file:
        file.write("node_config { var_name: 'nobody' PSSynchronizer { reduction_destination: '/device:CPU:0' } }\n")
    assert "refused" in running.strategy_again([*FLAGS, *flags], str(tmp_path), str(tmp_path / "out.meta"))


def test_what_does_not_load_is_found(tmp_path):
    def change(graph_def):
        next(n for n in graph_def.node if n.op == "MatMul").input[0] = "nobody"

    assert judge(plan(*LAYERS), tmp_path, change=change).kind == "fails"


def test_equal_elements_are_not_told_apart():
    """Packets and what is left over of them may round equal elements differently, so which is the largest of these is chance."""
    with running.tf.Graph().as_default() as graph:
        x = genes.tf1.placeholder("float32", [12, 2], name="x")
        y = genes.tf1.sigmoid(x, name="y")
        genes.tf1.argmax(y, 0, name="which")
        genes.tf1.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, genes.tf1.tanh(v)), [0, x], name="loop")
    shaken = running.shaken(graph.as_graph_def(add_shapes=True), running.np.random.RandomState(0), "float32")
    feeds = {"x:0": running.np.full([12, 2], 0.3, "float32")}
    values = {}
    for name, graph_def in (("own", graph.as_graph_def()), ("shaken", shaken)):
        with running.Running(graph_def, 1) as running_:
            values[name] = running_.run(["which:0", "y/fuzz:0" if name == "shaken" else "y:0", "loop/Exit_1:0"], feeds)
    assert list(values["own"][0]) == [0, 0] and any(values["shaken"][0])
    for own, other in zip(values["own"][1:], values["shaken"][1:]):
        assert 0 < running.difference(own, other) < 1e-6


def test_a_wrong_scale_is_found_and_excused(tmp_path):
    """--grad that says sum for a mean: a warning excuses it; without the warning it is wrong."""
    built = genes.build(descend(None))
    update = next(n for n in built.meta.graph_def.node if n.op == "ResourceApplyGradientDescent")
    variable, gradient = update.input[0], update.input[-1]
    reference = running.Reference(built)
    verdict = running.judge(built, reference, [*FLAGS, f"--grad={variable}={gradient},sum"], str(tmp_path))
    assert verdict.kind == "differs" and "grad" in verdict.warnings, verdict
    running.ASKED.discard("grad")
    try:
        assert running.judge(built, reference, [*FLAGS, f"--grad={variable}={gradient},sum"], str(tmp_path)).kind == "wrong"
    finally:
        running.ASKED.add("grad")
        reference.close()


def test_minimized(tmp_path):
    """The minimal graph keeps the needs of a broken reduction: a feed, a function of the rows, an update."""
    big = descend(None)
    extra = [(20 + i, kind, 3) for i, kind in enumerate(("more_rows", "unary", "concat", "layer_norm", "penalty", "counter"))]
    big = genes.Plan(1, {**PLAIN, "shuffle": True, "scope": "model"}, [*big.genes[:1], *extra[:4], *big.genes[1:], *extra[4:]])
    verdict = judge(big, tmp_path, change=no_reduction)
    assert verdict.kind == "wrong", verdict
    nodes = len(genes.build(big).meta.graph_def.node)
    small, flags, built, after = minimize.small(big, [*FLAGS, "--threads=2"], "wrong", str(tmp_path), no_reduction)
    assert after.kind == "wrong"
    assert len(small.genes) <= 4 and small.head["scope"] == "" and not small.head["shuffle"], small
    assert "--threads=2" not in flags
    assert len(built.meta.graph_def.node) < min(nodes / 3, 30)
    minimize.write(str(tmp_path / "found"), built, flags, after, small, 0)
    assert sorted(os.listdir(tmp_path / "found")) == ["README", "cmd", "feeds.txt", "graph.meta", "graph.pbtxt"]
    done = subprocess.run([harness.graft_opt(), str(tmp_path / "found" / "graph.pbtxt"), "--emit=none", *flags])
    assert done.returncode == 0


# Mended findings of the fuzzer: genes, settings of the head, options.
MENDED = {
    # A sum over all rows took the axes along which one row of a replica is repeated: with one row, one more.
    "axes-of-one-row": (
        [(2, "series_feed", 824578956), (6, "unrolled", 1056883149), (7, "layer_norm", 219856453),
         (12, "own_negatives", 735446932), (14, "optimize", 287999379)],
        {"rows": 1, "wild": True},
        [],
    ),
    # Rows of one part of a table, which a policy lets vary, were stitched with those of all replicas of another.
    "parts-with-policies": (
        [(0, "rows_feed", 677564946), (4, "label_feed", 132350176), (5, "batch_norm", 234424119),
         (9, "embedding", 656897743), (12, "optimize", 983400054)],
        {"rows": 1},
        ["--variable=v9_2=sync-on-read,mean"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_what_was_found(tmp_path, name):
    listed, head, flags = MENDED[name]
    seed = {"axes-of-one-row": 800000295, "parts-with-policies": 800000164}[name]
    verdict = judge(genes.Plan(seed, {**PLAIN, **head}, listed), tmp_path, flags)
    assert verdict.kind == "ok", verdict.detail


# Sizes that were believed where the op that states them does not run, or of what is written at different times: the seed, where
# the fuzzer found it, what is set in the head, genes.
FALSE_SIZES = {
    "branch": (
        2020, {"pair": True},
        [(0, "sizes_feed", 62551380), (1, "sizes_feed", 422719559), (2, "sizes_consumer", 238717822),
         (5, "sizes_branch", 554334798), (6, "sizes_loss", 110000517), (7, "sizes_train", 31330802)],
    ),
    "branch-of-version-2": (
        100470, {"pair": True},
        [(0, "sizes_feed", 431819520), (1, "sizes_feed", 926454839), (4, "sizes_branch", 953689734),
         (5, "sizes_loss", 626548505), (6, "sizes_train", 496145415)],
    ),
    "assertion-in-a-branch": (
        100426, {"pair": True},
        [(0, "sizes_feed", 1043675982), (1, "sizes_feed", 346088662), (2, "sizes_consumer", 403752433),
         (3, "sizes_branch", 245204105), (4, "sizes_loss", 460386750), (6, "sizes_train", 971566542)],
    ),
    "loop-without-a-turn": (
        100055, {},
        [(0, "sizes_feed", 735621261), (1, "sizes_feed", 323041756), (2, "sizes_feed", 234443268),
         (3, "sizes_turns", 875225978), (4, "sizes_consumer", 890722379), (5, "sizes_loss", 66510528),
         (6, "sizes_train", 486929032)],
    ),
    "branch-of-a-function": (
        2382, {"pair": True},
        [(0, "sizes_feed", 341205241), (1, "sizes_feed", 13690910), (4, "sizes_consumer", 411758787),
         (6, "sizes_called", 919686026), (8, "sizes_loss", 505913388), (9, "sizes_train", 1047712305)],
    ),
    "unfetched": (
        2043, {},
        [(0, "sizes_feed", 829230451), (1, "sizes_feed", 453026665), (2, "sizes_feed", 238052475),
         (3, "sizes_consumer", 1039391630), (4, "sizes_unfetched", 875140613), (5, "sizes_loss", 242721511),
         (6, "sizes_train", 442252494)],
    ),
    "array": (
        110590, {"pair": True},
        [(0, "sizes_feed", 149067221), (1, "sizes_feed", 645416813), (6, "sizes_kept", 366348941),
         (7, "sizes_consumer", 753030493), (9, "sizes_loss", 1059661413), (11, "sizes_train", 1004729758)],
    ),
    "list": (
        125392, {},
        [(0, "sizes_feed", 937355188), (1, "sizes_feed", 884727372), (2, "sizes_kept", 282362516),
         (4, "sizes_consumer", 1015082478), (7, "sizes_loss", 639577810), (8, "sizes_train", 164642113)],
    ),
    "stack": (
        2018, {},
        [(0, "sizes_feed", 318603444), (1, "sizes_feed", 466209490), (2, "sizes_consumer", 649582752),
         (3, "sizes_kept", 536124205), (4, "sizes_loss", 1039853999), (6, "sizes_train", 23016720)],
    ),
    "assigned-reference": (
        2182, {"pair": True, "static": True},
        [(0, "sizes_feed", 475514060), (2, "sizes_feed", 21930253), (3, "sizes_memory", 663985746),
         (5, "sizes_layer", 420886551), (6, "sizes_loss", 421570855), (7, "sizes_loss", 465275149),
         (8, "sizes_train", 858271290)],
    ),
    "assigned-resource": (
        2217, {},
        [(0, "sizes_feed", 3140441), (1, "sizes_feed", 501538154), (2, "sizes_memory", 545115646),
         (6, "sizes_consumer", 79154975), (8, "sizes_loss", 885365356), (9, "sizes_train", 194809514)],
    ),
    "branch-beside-a-static-feed": (
        545, {"static": True},
        [(0, "sizes_feed", 767176282), (1, "sizes_feed", 638015382), (2, "sizes_branch", 233429609),
         (4, "sizes_consumer", 15302563), (8, "sizes_loss", 369710286), (9, "sizes_train", 1045763142)],
    ),
    "assigned-slice": (
        2708, {"rows": 3},
        [(0, "sizes_feed", 879931771), (1, "sizes_feed", 100800263), (2, "sizes_consumer", 753819231),
         (3, "sizes_memory", 265675759), (5, "sizes_loss", 212474335), (6, "sizes_train", 998551105)],
    ),
    "slice-of-number": (
        7002831, {"static": True, "pair": True},
        [(0, "sizes_feed", 486013322), (1, "sizes_feed", 661976855), (2, "sizes_branch", 541176808),
         (5, "sizes_loss", 191067360), (6, "sizes_train", 50353050)],
    ),
    "reshape-by-quotient": (
        7000631, {"static": True},
        [(0, "sizes_feed", 209395176), (1, "sizes_feed", 542618203), (2, "sizes_consumer", 349312735),
         (8, "sizes_loss", 576587939), (9, "sizes_train", 938824830)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE_SIZES)
def test_false_sizes(tmp_path, name):
    seed, head, listed = FALSE_SIZES[name]
    usual = {**PLAIN, "family": "sizes", "rows": 1, "wild": True, "half": "", "steps": 3, "pair": False, "equal": False,
             "empty": False, "odd": False}  # fmt: skip
    verdict = judge(genes.Plan(seed, {**usual, **head}, listed), tmp_path, usual=["--replicas=2", "--device-type=CPU"])
    assert verdict.kind not in running.BAD, verdict


def test_sizes_fit_one_device():
    """Row counts differ between feeds and between steps, and one device runs nearly all graphs."""
    runs, different = 0, 0
    for seed in range(20):
        try:
            built = genes.build(genes.draw("sizes", seed))
            running.Reference(built).close()
        except (genes.Illegal, running.tf.errors.OpError):
            continue
        runs += 1
        counts = {tuple(len(feeds[name]) for name in built.split) for feeds in built.feeds}
        different += len(counts) > 1 and any(len(set(c)) > 1 for c in counts)
        assert all("loss:0" in names for names in built.beside)
    assert runs >= 18 and different >= 5, (runs, different)


def test_a_wrong_fetch_of_a_step_is_found(tmp_path):
    """The run of a step of `sizes.py` fetches losses, which are compared."""

    def change(graph_def):
        node = next(n for n in graph_def.node if n.name == "loss")
        new = graph_def.node.add(name="more", op="Neg", input=[node.input[0]], device=node.device)
        new.attr["T"].CopyFrom(node.attr["T"])
        node.input[0] = "more"

    for seed in range(20):
        plan = genes.draw("sizes", seed)
        plan = genes.Plan(seed, {**plan.head, "odd": False}, [g for g in plan.genes if g[1] != "sizes_memory"])
        flags = [f"--replicas={plan.head['replicas']}", "--device-type=CPU"]
        if judge(plan, tmp_path, usual=flags).kind == "ok":
            verdict = judge(plan, tmp_path, change=change, usual=flags)
            assert verdict.kind == "wrong" and verdict.detail.startswith("of step 1: loss:0"), verdict
            return
    raise AssertionError("no seed is right")


def test_the_same_plan_makes_the_same_graph():
    # But for the names of functions, which TensorFlow counts in a process.
    nodes = lambda built: [(n.name, n.op, list(n.input), sorted(n.attr)) for n in built.meta.graph_def.node]
    for seed in range(3):
        a, b = (genes.build(genes.Plan.draw(seed)) for _ in range(2))
        assert nodes(a) == nodes(b)
        assert genes.Plan.parse(genes.Plan.draw(seed).text()) == genes.Plan.draw(seed)


def test_a_gene_less_changes_no_other():
    """Ops that do not use the left-out ones have the same operands."""
    whole = plan("dense", "count_rows", "more_rows", "dense", "squares", "optimize")
    less = genes.Plan(1, whole.head, [g for g in whole.genes if g[1] != "count_rows"])
    ops = lambda p: [n.op for n in genes.build(p).meta.graph_def.node]
    rest = iter(ops(whole))
    assert len(ops(less)) < len(ops(whole)) and all(op in rest for op in ops(less))


@pytest.mark.parametrize("family", ["all", "sizes"])
def test_program(tmp_path, family):
    """The program itself: some graphs, no finding, and a count of them."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(FOLDER, "fuzz.py"), f"--family={family}", "--graphs=3", "--seed=21",
         f"--log={tmp_path / 'log'}"],
        capture_output=True, text=True, timeout=300, env={**os.environ, "GRAFT_OPT": harness.graft_opt()},
    )  # fmt: skip
    assert "differential fuzzing from seed 21" in done.stdout, done.stdout
    assert "graphs a second" in done.stdout, done.stdout
    assert (tmp_path / "log").read_text().count('"kind"') >= 3
