"""Sixteen threads, or one per design, make concurrent calls, each with its own shape; then again with warm caches. Named
designs, or all.

A program of its own, so that the first round is the first call of everything in its process. Prints what is wrong; a
deadlock ends it with the stacks of all threads.
"""

import faulthandler
import sys
import threading

from tests.harness import prepare, random, runnable_designs, suited, taken

THREADS = 16  # or one per design, if there are more
ROUNDS = 2
SECONDS = 200


def operands(op, i, dtype):
    """The operands of thread i; no two threads share a shape."""
    return {
        "gemm": lambda: (random(20 + 3 * i, 17 + i), random(17 + i, 40 + i)),
        "gemv": lambda: (random(20 + i, 100 + 7 * i), random(100 + 7 * i)),
        "conv2d": lambda: (random(1, 2 + i % 3, 6 + i, 9), random(3 + i, 2 + i % 3, 3, 3)),
        "conv2d_input": lambda: ((1, 2 + i % 3, 6 + i, 9), random(3 + i, 2 + i % 3, 2, 3), random(1, 3 + i, 5 + i, 7)),
        "conv2d_weight": lambda: (random(1, 2 + i % 3, 6 + i, 9), (3 + i, 2 + i % 3, 2, 3), random(1, 3 + i, 5 + i, 7)),
        "conv2d_bias": lambda: (random(2, 3 + i, 5 + i, 70),),
        "matmul": lambda: (random(20 + 3 * i, 17 + i, dtype=dtype), random(17 + i, 40 + i, dtype=dtype)),
    }[op]()


def main(names):
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    chosen = [p.values for p in runnable_designs() if not names or p.id in names]
    count = max(THREADS, len(chosen))
    barrier = threading.Barrier(count)
    wrong = []

    def work(library, op, design, number):
        try:
            barrier.wait()
            dtype, options = taken(library, op, design)
            args = operands(op, number, dtype)
            if op == "conv2d":
                shapes, _ = suited(library, op, design, [t.shape for t in args])
                args = [t if t.shape == shape else random(*shape, dtype=dtype) for t, shape in zip(args, shapes)]
            call = prepare(op, *args, **options)
            library.run(call, design)
            results.append((library, call, design, args))
        except BaseException as error:
            wrong.append(f"{library.package} {op} {design}: {error!r}")

    for round in range(ROUNDS):
        results = []
        threads = []
        for i in range(count):
            library, op, design = chosen[i % len(chosen)]
            threads.append(threading.Thread(target=work, args=(library, op, design, count * round + i)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for library, call, design, args in results:
            if not library.judge(call, design, None, *args).ok:
                wrong.append(f"round {round}: {call.problem} is wrong")
    print(*wrong, sep="\n", end="")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
