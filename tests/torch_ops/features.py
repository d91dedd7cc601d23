"""What works with our operations, as docs/torch.md says: each cell of its table is a test (test_features.py sees to it)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

NOTHING = MappingProxyType({})


class Feature(NamedTuple):
    text: str
    test: str  # file::function, with cases of every operation, whose names begin with it, as those of samples.SAMPLES
    instead: Mapping = NOTHING  # {operation without cases: (what it does instead, the test of that)}
    where: tuple = ()  # what the names of the cases must have, too


FEATURES = (
    Feature("eager calls, no_grad, inference_mode", "test_everyday.py::test_without_gradients"),
    Feature("gradients, and gradients of gradients", "test_gradients.py::test_gradients_of_first_and_second_order"),
    Feature("gradcheck and gradgradcheck", "test_gradients.py::test_gradcheck"),
    Feature("incoming gradients of any strides", "test_gradients.py::test_gradients_come_in_any_layout"),
    Feature("nothing kept that no gradient needs", "test_gradients.py::test_only_what_is_wanted_is_computed_and_kept"),
    Feature("checkpoint, save_on_cpu", "test_everyday.py::test_gradients_within"),
    Feature("gradients in several threads", "test_everyday.py::test_gradients_in_several_threads"),
    Feature("forward mode (dual numbers)", "test_gradients.py::test_forward_mode"),
    Feature("torch.func: vjp, jvp, linearize", "test_everyday.py::test_products_with_jacobians"),
    Feature("torch.func: grad, jacrev, jacfwd, hessian", "test_gradients.py::test_transforms_of_torch_func"),
    Feature("torch.vmap over any operands", "test_batches.py::test_every_operand_may_have_the_batch"),
    Feature("torch.vmap of gradients", "test_batches.py::test_batches_of_gradients"),
    Feature(
        "autocast",
        "test_autocast.py::test_operands_are_lowered",
        instead={"gemm": ("stays float32", "test_autocast.py::test_what_is_not_lowered")},
    ),
    Feature("fake and meta tensors", "test_tracing.py::test_fake_and_meta_tensors"),
    Feature("torch.compile(fullgraph=True), with gradients", "test_tracing.py::test_compiled_with_gradients"),
    Feature("the same with inductor", "test_everyday.py::test_compiled_by_inductor"),
    Feature("AOTInductor: packaged, loaded, run", "test_everyday.py::test_packaged_by_aotinductor"),
    Feature("compiled jvp, jacfwd, dual numbers", "test_compiled.py::test_tangents_of_compiled_code"),
    Feature("compiled, sizes that only data decides", "test_compiled.py::test_sizes_that_only_data_decides"),
    Feature("one graph for all sizes", "test_everyday.py::test_all_sizes_may_change"),
    Feature("torch.export, saved and loaded", "test_tracing.py::test_export_round_trip"),
    Feature("make_fx", "test_everyday.py::test_make_fx"),
    Feature("torch.jit.trace, copied, saved and loaded", "test_everyday.py::test_traced_modules_are_copied_and_saved"),
    Feature("FLOP counts", "test_tracing.py::test_flops_are_counted"),
    Feature("torch.profiler", "test_everyday.py::test_a_profile_names_the_operator"),
    Feature("dispatch modes", "test_tracing.py::test_modes_see_one_operator"),
    Feature("torch.library.opcheck", "test_opcheck.py::test_opcheck"),
    Feature("DTensor: sharded operands, on 4 processes", "test_sharding.py::test_shares_of_four_processes_make_the_whole"),
    Feature("side streams", "test_streams.py::test_on_a_side_stream_behind_a_spinning_kernel"),
    Feature("CUDA graphs, with gradients", "test_streams.py::test_captured_with_its_gradients"),
    *(
        Feature(text, "test_gradients.py::test_gradients_of_first_and_second_order", where=where)
        for text, where in {
            "Triton's interpreter, without a GPU": ("cpu", "tritonkernels"),
            "CUDA C++ emulated, without a GPU": ("cpu", "cuda_reference"),
            "Triton on a GPU": ("cuda", "tritonkernels"),
            "CUDA C++ on a GPU": ("cuda", "cuda_reference"),
        }.items()
    ),
)
