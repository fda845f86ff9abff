# SPDX-License-Identifier: Apache-2.0
"""graft_add_graph for Bazel.

    load("//third_party/graft:graft.bzl", "graft_add_graph")

    graft_add_graph(
        name = "model_x4",
        input = "model.meta",
        output = "model.x4.meta",
        replicas = 4,
        device_type = "CPU",
        strategy = "all-reduce",
    )

`strategy_file`, `cluster` and `resources` are labels of files, `args` further options of graft-opt. `tool` is the label of
graft-opt, by default `//third_party/graft:graft-opt`, a file (`exports_files(["graft-opt"])`) or an `sh_binary`. The graph is
made again when a file that is named here or graft-opt changed.
"""

def _graft_graph_impl(ctx):
    output = ctx.outputs.output
    args = ctx.actions.args()
    args.add(ctx.file.input)
    args.add("-o", output)
    if ctx.attr.replicas:
        args.add("--replicas=%d" % ctx.attr.replicas)
    if ctx.attr.device_type:
        args.add("--device-type=" + ctx.attr.device_type)
    if ctx.attr.strategy:
        args.add("--strategy=" + ctx.attr.strategy)
    inputs = [ctx.file.input]
    for flag, file in (
        ("--strategy=", ctx.file.strategy_file),
        ("--cluster=", ctx.file.cluster),
        ("--resources=", ctx.file.resources),
    ):
        if file:
            args.add(flag + file.path)
            inputs.append(file)
    args.add_all(ctx.attr.args_)
    ctx.actions.run(
        executable = ctx.executable.tool,
        arguments = [args],
        inputs = inputs,
        outputs = [output],
        mnemonic = "GraftGraph",
        progress_message = "Distributing graph " + output.short_path,
    )
    return [DefaultInfo(files = depset([output]))]

_graft_graph = rule(
    implementation = _graft_graph_impl,
    attrs = {
        "input": attr.label(allow_single_file = True, mandatory = True),
        "output": attr.output(mandatory = True),
        "replicas": attr.int(),
        "device_type": attr.string(),
        "strategy": attr.string(),
        "strategy_file": attr.label(allow_single_file = True),
        "cluster": attr.label(allow_single_file = True),
        "resources": attr.label(allow_single_file = True),
        "args_": attr.string_list(),
        "tool": attr.label(executable = True, allow_single_file = True, cfg = "exec", mandatory = True),
    },
)

def graft_add_graph(name, input, output, args = [], tool = None, **kwargs):
    """Rewrites `input` into `output` with graft-opt when either it or graft-opt changed.

    Args:
      name: Name of the target.
      input: Label of the graph file.
      output: Name of the file to write.
      args: Further options of graft-opt.
      tool: Label of graft-opt; `//third_party/graft:graft-opt` by default.
      **kwargs: replicas, device_type, strategy or strategy_file, cluster, resources, and what every rule takes.
    """
    _graft_graph(
        name = name,
        input = input,
        output = output,
        args_ = args,
        tool = tool or Label("//third_party/graft:graft-opt"),
        **kwargs
    )
