"""Tests, by what they are for; here is what all share.

designs       what runs over every design of every operation; in conv2d, matmul and gluon what only some designs promise
operations    what an operation promises its users, whichever design computes it
properties    generated calls, valid and invalid
large         operands and results of more than 2^31 elements, on a GPU
memory        no access outside a tensor
concurrency   threads, processes, and the cache of builds
choice        the model of time, the tuned tables, and the tuner that fills them
analysis      the theory in tritonkernels.analysis
simt          the emulation that CUDA designs run in without a GPU
perf          the comparison, its records and its gate
gate          the calls that the gate makes under compute-sanitizer
mutants       kernels broken on purpose, and which test notices
tools         what is around kernels: docs, examples, imports, the interpreter, the judge
"""
