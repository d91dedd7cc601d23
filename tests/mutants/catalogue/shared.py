"""Broken code that several operations share: the language's building blocks, validation, batches, device helpers."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/common/python.cuh",
        "test_arguments",
        ("ints of too many bits", " && int64_t(uint64_t(number) << unused) >> unused == number", ""),
        ("unsigned ints of too many bits", " && number << unused >> unused == number) return number;", ") return number;"),
        (
            "a float as the double that Python has",
            "parameter.bytes == 4 ? write(float(number)) : write(number)",
            "write(number)",
        ),
        ("members 8 bytes apart", "to + i * bytes, &number", "to + i * 8, &number"),
    ),
    *of(
        "cuda_reference/common/python.cuh",
        "matmul_epilogues and cuda_reference and pipelined",
        ("a long argument is overwritten", "rounded_up(parameter.bytes * parameter.count)", "rounded_up(parameter.bytes)"),
    ),
    *of(
        "cuda_reference/common/overlap.cuh",
        "test_waits and before_the_wait and gemv",
        ("kernels that do not wait", 'asm volatile("griddepcontrol.wait;" ::: "memory");', ""),
    ),
    *of(
        "cuda_reference/gemv/split_n.cuh",
        "test_waits and before_the_wait and split_n",
        (
            "a wait after the counters are touched",
            "    wait_for_earlier_kernels();\n",
            "    if (threadIdx.x == 0) atomicAdd(counters, 0);\n    wait_for_earlier_kernels();\n",
        ),
    ),
    *of(
        "tritonkernels/language/overlap.py",
        "test_waits and triton and conv2d_bias",
        ("Triton's kernels do not wait", "            gdc_wait()\n", ""),
    ),
    *of(
        "tritonkernels/conv2d_bias/channel_sums.py",
        "test_waits and triton and conv2d_bias",
        ("a Triton kernel that never waits", "    wait_for_earlier_kernels()\n", ""),
    ),
    *of(
        "tritonkernels/language/tiles.py",
        "tritonkernels and rasterized",
        ("last group as long as the others", "rows = min(tiles_m - first, GROUP_M)", "rows = GROUP_M"),
    ),
    *of(
        "tritonkernels/language/epilogue.py",
        "tritonkernels and matmul",
        ("bf16 truncated", "+ ((bits >> 16) & 1)) >> 16", "* 0) >> 16"),
    ),
    *of(
        "tritonkernels/validate.py",
        "gemm and beta_is_zero and tritonkernels",
        ("C read at beta = 0", "return value if beta != 0 else None", "return value"),
    ),
    *of(
        "tritonkernels/validate.py",
        "test_overlap",
        ("strides of out compared with the next smaller alone", "span += (size", "span = (size"),
        (
            "memory that may be shared taken for apart",
            "except (numpy.exceptions.TooHardError, OverflowError):\n        return True",
            "except (numpy.exceptions.TooHardError, OverflowError):\n        return False",
        ),
    ),
    *of(
        "tritonkernels/choice/choose.py",
        "test_choose",
        (
            "the slowest of the others ranked first",
            "*sorted(choices, key=lambda choice: choice.cost)",
            "*sorted(choices, key=lambda c: -c.cost)",
        ),
        (
            "the first config of each design only",
            "        for config in design.configs(problem, target):\n            works",
            "        for config in list(design.configs(problem, target))[:1]:\n            works",
        ),
        (
            "the last config of each design only",
            "configs(problem, target))[::-1]) for each",
            "configs(problem, target))[::-1][:1]) for each",
        ),
        ("the first of equals ranked first", "    found.reverse()\n", ""),
        ("kernels after the first for nothing", "works, factor, NEAR * least)", "works, factor, 0.0)"),
        ("what was never timed chosen", "if timed is asked:", "if asked:"),
        ("what was never timed ranked first", "in enumerate(found) if timed]", "in enumerate(found)]"),
    ),
    *of(
        "tritonkernels/choice/choose.py",
        "test_learned",
        ("what is far slower ranked by what was learned", "costs[at] = max(costs[at], costs[first])", "pass"),
    ),
    *of(
        "tritonkernels/choice/learned.py",
        "test_learned",
        ("a threshold above itself", "self.asked] > self.thresholds", "self.asked] >= self.thresholds"),
        ("answers read backwards", "self.asked.shape[1])[::-1])", "self.asked.shape[1]))"),
        ("the slowest of the contenders", "key=seconds.__getitem__", "key=lambda at: -seconds[at]"),
        ("all are contenders", "if contender.seconds <= most", "if most"),
    ),
    *of(
        "perf/fit/boosting.py",
        "test_boosting",
        ("leaves say the opposite", "values = RATE *", "values = -RATE *"),
        ("a wrong time counts as much as it is wrong", "(numpy.clip(part, -OUTLIER, OUTLIER) for part in", "(part for part in"),
        ("slow runs count as fast ones", "weights * apart", "apart"),
        ("what a shape takes counts fully", "LEVEL * common", "common"),
        ("the mean of all shapes", "(left - means, means)", "(left - left.mean(), means)"),
        ("runs that say 0 left out", "minlength=number) + PRIOR", "minlength=number) + 1e-9"),
        ("the worst question asked", ".argmax()", ".argmin()"),
        ("questions asked twice", "found.setdefault(answers.tobytes(),", "found.setdefault((at, threshold),"),
    ),
    *of(
        "tritonkernels/choice/work.py",
        "test_model",
        ("prefetches into the stage that is read", "return max(1, stages - 1)", "return stages"),
    ),
    *of(
        "tritonkernels/choice/model.py",
        "test_model",
        (
            "the tail of the last wave for nothing",
            "busiest = full * held - (-rest // reached)",
            "busiest = full * held + rest / reached",
        ),
        ("clusters on all SMs", "sms if cluster <= 2 else", "sms if cluster <= 99 else"),
        (
            "what a design sustains left out",
            "map(truediv, parts_of(work, rate), further if at else first)",
            "parts_of(work, rate)",
        ),
        ("all launches as long as the first", "kernel + launch, further", "kernel + launch, first"),
        ("an epilogue for nothing", "(overlap + after * epilogue / of_epilogue)", "overlap"),
        ("what an activation takes, of the whole kernel", "(overlap + after * epilogue", "(after * overlap + after * epilogue"),
        ("new numbers beside known ones taken for timed", "and all(value in self.timed", "and any(value in self.timed"),
        ("what a design sustains of the latency left out", "latency / of_latency)", "latency)"),
    ),
    *of(
        "perf/measure/trial.py",
        "test_sweep",
        ("what was never timed left out of a sweep", "if not ranked[at].timed}", "if False}"),
        (
            "random contenders of the design with most configs",
            "pick.choice(list(left))",
            "max(left, key=lambda n: len(left[n]))",
        ),
    ),
    *of(
        "tritonkernels/workspace.py",
        "test_workspace",
        ("counters of graphs freed", "    _allocated.append(zeros)\n", ""),
    ),
    *of(
        "tritonkernels/choice/table.py",
        "test_table",
        ("sizes of whole chunks taken for others", 'if size % chunk == 0 else ""', 'if False else ""'),
        ("times of another compiler's code used", "return found.get(current)", "return next(iter(found.values()))"),
    ),
    *of(
        "tritonkernels/choice/shipped.py",
        "test_shipped",
        ("times of another compiler's code used", "found.get(compiler()) if found", "next(iter(found.values())) if found"),
        ("tables kept of the model's choices", "if entry.design is not None:", "if True:"),
    ),
    *of(
        "tritonkernels/library.py",
        "test_shipped",
        (
            "the shipped table asked first",
            '(self.tuned, "tuned table"), (self.shipped, "shipped table")',
            '(self.shipped, "shipped table"), (self.tuned, "tuned table")',
        ),
    ),
    *of(
        "tritonkernels/choice/bench.py",
        "a_wrong_candidate",
        ("results not poisoned", "result.fill_(math.nan if", "(math.nan if"),
    ),
    *of(
        "tritonkernels/choice/tuner.py",
        "nothing_is_better",
        ("noise taken for a gain", "if default and not winner.beats(default):", "if not default:"),
    ),
    *of(
        "tritonkernels/library.py",
        "larger_error",
        ("what must be named taken from the table", "if design.transform(entry.config) is None", "if True"),
    ),
    *of(
        "perf/measure/comparison.py",
        "ratio_is_to_torch_s_fastest",
        ("the slowest of torch's ways the yardstick", "min(fair)", "max(fair)"),
    ),
    *of(
        "tritonkernels/problem.py",
        "offsets",
        ("32-bit offsets", "end >= 2**31", "end >= 2**61"),
    ),
    *of(
        "tritonkernels/batches.py",
        "matmul_shapes",
        (
            "unmergeable batches merged",
            "    while outer > 0 and all(merges(t, outer - 1) for t in tensors):",
            "    while outer > 0:",
        ),
    ),
    *of(
        "tritonkernels/language/splits.py",
        "(split_k and matmul) or test_implicit_gemm and tails",
        ("last split forgotten", "in tl.static_range(1, AT_ONCE):", "in tl.static_range(1, AT_ONCE - 1):"),
        ("splits after the last whole turn forgotten", "in tl.static_range(REST):", "in tl.static_range(0):"),
        ("splits after the last whole turn are the first of it", "(AT_ONCE + split) * SIZE", "split * SIZE"),
    ),
    *of(
        "tritonkernels/language/dot.py",
        "special or matmul or nan or denormal or tf32",
        ("tf32 truncated", "(bits + 0x1000) & 0xFFFFE000", "bits & 0xFFFFE000"),
        ("NaN rounded like a number", "tl.where(x == x, rounded, quiet)", "rounded"),
        ("tf32 not rounded", "        if not ARE_TF32:", "        if False:"),
        ("high nibbles unsigned", "return high.to(tl.int8, bitcast=True) >> 4", "return (high >> 4).to(tl.int8, bitcast=True)"),
        ("padding counted by xor", "(acc + 8 * walked) >> 1", "(acc + 8 * (walked - 1)) >> 1"),
    ),
    *of(
        "tritonkernels/language/splits.py",
        "arrivals_of_triton",
        ("an arrival that publishes nothing", 'sem="acq_rel"', 'sem="relaxed"'),
    ),
    *of(
        "tritonkernels/problem.py",
        "part_of_a_buffer",
        ("TMA writes rows that end within a chunk", "return t.shape[-1] * t.element_size() % 16 == 0", "return True"),
    ),
    *of(
        "cuda_reference/common/last_to_arrive.cuh",
        "fences_of_cuda and split_n",
        ("stores not before the arrival", "atom.global.gpu.acq_rel", "atom.global.gpu.acquire"),
        ("loads not after the arrival", "atom.global.gpu.acq_rel", "atom.global.gpu.release"),
    ),
    *of(
        "cuda_reference/common/raster.cuh",
        "last_band or (cuda_reference and gemm and rasterized)",
        ("last band as high as the others", "min(group, tiles_m - band * group)", "group"),
    ),
    *of(
        "cuda_reference/common/reduce.cuh",
        "cuda_reference and gemv",
        ("last step of the reduction dropped", "offset > 0; offset /= 2", "offset > 1; offset /= 2"),
        ("a warp left out of the block's sum", "for (int warp = 1; warp < WARPS", "for (int warp = 2; warp < WARPS"),
    ),
]
