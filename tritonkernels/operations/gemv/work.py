"""The Work of gemv's designs, for both packages: threads that walk along rows, or down contiguous columns."""

from ...analysis.sectors import SECTOR
from ...choice.work import Work
from .vectors import full_vector

EPILOGUE = 4  # operations on a sum: scale, alpha, beta, y
MOST_REGISTERS = 128


def row_vector(problem):
    """Elements of a load along rows, as the Cut of a row-major A has them (`vectors.cut`)."""
    vector = full_vector(problem.a_dtype)
    whole = problem.n % vector == 0 or (problem.rows == 1 and problem.n > vector)
    return vector if problem.a_layout == "row" and whole and problem.n else 1


def column_vector(problem):
    """The same down columns, for a column-major A."""
    vector = full_vector(problem.a_dtype)
    contiguous = problem.a_layout == "col" or problem.n == 1
    return vector if contiguous and problem.n and problem.m and problem.m % vector == 0 else 1


def along_rows(problem, threads, rows, lanes, width, unroll, splits=1):
    """Blocks of `threads` take `rows` rows each, or of those one of `splits` pieces; `lanes` threads walk a row by loads of
    `width` elements, `unroll` at a time."""
    a_size, x_size = problem.a_dtype.itemsize, problem.dtype.itemsize
    loads = -(-problem.n // (width * splits))
    rounds = -(-loads // (lanes * unroll))
    columns = loads * width
    if problem.a_layout == "row":  # all of a row that is within a sector is used at once
        piece = lanes * width * a_size
        fetched = rows * columns * a_size * (SECTOR / piece if piece < SECTOR < columns * a_size else 1)
    elif problem.a_layout == "col":
        fetched = columns * -(-rows * a_size // SECTOR) * SECTOR
    else:
        fetched = columns * rows * SECTOR
    blocks, padded = -(-problem.rows // rows) * splits, rounds * unroll * lanes * width
    in_flight = unroll * max(1, rows * lanes // threads) * width * (a_size + x_size)
    return _work(problem, blocks, threads, rows, columns, fetched, rounds, splits, padded, in_flight)


def along_columns(problem, threads, lanes, depth, width, unroll, splits):
    """Blocks take `lanes` vectors of `width` rows side by side, or of those one of `splits` pieces, in rounds of `unroll` times
    `depth` columns."""
    a_size, rows = problem.a_dtype.itemsize, lanes * width
    columns = -(-problem.n // splits)
    rounds = -(-columns // (depth * unroll))
    fetched = columns * (-(-rows * a_size // SECTOR) if problem.a_layout == "col" else rows) * SECTOR
    blocks, in_flight = problem.batch * -(-problem.m // rows) * splits, unroll * width * a_size
    return _work(problem, blocks, threads, rows, columns, fetched, rounds + 1, splits, rounds * unroll * depth, in_flight)


def _work(problem, blocks, threads, rows, columns, of_a, rounds, splits, padded, in_flight):
    """The work of blocks that fetch `of_a` bytes of A for `rows` sums of `padded` products. A thread keeps `in_flight` bytes in
    registers. The last of several splits adds their sums."""
    x_size, m = problem.dtype.itemsize, problem.m
    of_x = columns * x_size * (1 if problem.x_shared or rows <= m else min(problem.batch, -(-rows // max(1, m))))
    results = rows * x_size * (2 if problem.beta else 1) + 4 * rows * problem.scaled
    return Work(
        blocks,
        threads,
        rows * (2.0 * padded + EPILOGUE),
        problem.precision,
        of_a + of_x + results + (2 * max(4, x_size) * rows if splits > 1 else 0),
        problem.bytes,
        rounds + (3 if splits > 1 else 1),
        min(MOST_REGISTERS, 32 + in_flight // 4),
    )
