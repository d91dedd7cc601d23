"""python -m tests.torch_ops.packaged PACKAGE SAMPLE DEVICE FILE: a model packaged by AOTInductor, loaded and run.

Its forward is that sample, by torch's own operators if PACKAGE is torch, to see whether AOTInductor works here. Prints "the
same" if the results are.
"""

import sys

import torch

import cuda_reference
from tests.torch_ops.samples import pair_of


def main(package, name, device, file):
    pair = pair_of(sys.modules.get(package) if package != "torch" else cuda_reference, name, device)
    function = pair.torchs if package == "torch" else pair.ours

    class Model(torch.nn.Module):
        def forward(self, *tensors):
            return function(*(2 * t for t in tensors)) + 1

    exported = torch.export.export(Model(), tuple(pair.make()))
    model = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(exported, package_path=file))
    tensors = pair.make()
    torch.testing.assert_close(model(*tensors), Model()(*tensors))
    print("the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
