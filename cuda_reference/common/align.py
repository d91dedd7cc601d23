"""Which operands TMA or cp.async can copy as they lie, the launches that align the others first (align.cuh), and which results
have rows that are not aligned."""

import torch

from tritonkernels.choice.work import LINE

from ..launch import CudaLaunch, Source, ceil_div, holds

_SOURCE = Source("common/align.cuh", tuple(f"operands::align<uint{bits}_t>" for bits in (8, 16, 32, 64)))
PATCH, THREADS = 64, 256  # rows and columns of an operand that a block takes, and its threads (patch.cuh)
CHUNK = 16  # bytes, to which lines must be aligned for TMA
PIECES = CHUNK, 8, 4, 2  # bytes that kernels copy at once: by cp.async, but 2 (parts/shifted_copies.cuh of matmul)


def k_major(matrix, span_dim, transposable=None, piece=CHUNK):
    """True if rows that begin at multiples of a piece's bytes lie along K, False if along M or N, None if neither.

    The matrix is (batch, M, K) or (batch, K, N); `span_dim` is the dimension of M or N. False needs an element type that is
    `transposable`: by ldmatrix those of 16 bits are, and larger ones are loaded one by one.
    """
    chunk = piece // matrix.element_size()
    span_stride, k_stride = matrix.stride(span_dim), matrix.stride(3 - span_dim)
    if not matrix.numel():
        return True  # it is not read
    if matrix.data_ptr() % piece or matrix.stride(0) % chunk:
        return None
    if k_stride == 1 and span_stride % chunk == 0:
        return True
    transposable = matrix.element_size() > 1 if transposable is None else transposable
    apart = k_stride >= matrix.shape[span_dim]
    return False if transposable and apart and span_stride == 1 and k_stride % chunk == 0 else None


def without_idle_strides(matrix, span_dim):
    """The matrix with stride 0, which is aligned, wherever a stride is unused: in dimensions of size 1 and if it is empty."""
    idle = [not matrix.numel() or (matrix.shape[dim] == 1 and dim in (0, span_dim)) for dim in range(3)]
    return matrix.as_strided(matrix.shape, [0 if idle[dim] else matrix.stride(dim) for dim in range(3)])


def in_whole_pieces(matrix, span_dim, piece=CHUNK):
    """k_major of a matrix that cp.async can read: the last piece of its last line must lie in the matrix's memory."""
    by_k = k_major(matrix, span_dim, piece=piece)
    along = 3 - span_dim if by_k else span_dim
    chunk = piece // matrix.element_size()
    lines = sum((size - 1) * stride for dim, (size, stride) in enumerate(zip(matrix.shape, matrix.stride())) if dim != along)
    fits = not matrix.numel() or holds(matrix, lines + ceil_div(matrix.shape[along], chunk) * chunk)
    return by_k if fits else None


def aligned(matrix, span_dim, layout=in_whole_pieces):
    """(the matrix, or a buffer from `along_k` if its `layout` is None; the launches that copy it there, if any)."""
    matrix = without_idle_strides(matrix, span_dim)
    return (matrix, []) if layout(matrix, span_dim) is not None else along_k(matrix, span_dim)


def in_pieces(a, b, layout=in_whole_pieces):
    """(A, B, the parameters of templates that say how their slices are copied, the launches that align what they cannot read).

    Pieces are as many bytes as an operand's lines are aligned to: where little is computed of each element, an aligned copy
    would take longer than the product. Chunks of 16 cost the fewest instructions.
    """
    a, a_by_k, a_piece, copies_of_a = _in_pieces(a, 1, layout)
    b, b_by_k, b_piece, copies_of_b = _in_pieces(b, 2, layout)
    parameters = {"A_BY_K": a_by_k, "B_BY_K": b_by_k, "A_PIECE": a_piece, "B_PIECE": b_piece}
    return a, b, parameters, copies_of_a + copies_of_b


def _in_pieces(matrix, span_dim, layout):
    """(the matrix or an aligned copy, its layout, the bytes of its pieces, the launches that copy it)."""
    matrix, itemsize = without_idle_strides(matrix, span_dim), matrix.element_size()
    for piece in PIECES if itemsize > 1 else PIECES[:-1]:
        by_k = layout(matrix, span_dim, piece=piece) if piece >= itemsize else None
        if by_k is not None:
            return matrix, by_k, piece, []
    matrix, launches = along_k(matrix, span_dim)
    return matrix, True, CHUNK, launches


def along_k(matrix, span_dim):
    """(a new buffer for the matrix, with rows along K that begin at lines of L2, or if they are shorter at chunks; the launches
    that copy the matrix there)."""
    batch = matrix.shape[0] if matrix.stride(0) else 1
    span, k = matrix.shape[span_dim], matrix.shape[3 - span_dim]
    unit = (CHUNK if k * matrix.element_size() < LINE else LINE) // matrix.element_size()
    pitch = ceil_div(k, unit) * unit
    room = torch.empty(batch, span, pitch, dtype=matrix.dtype, device=matrix.device)
    kernel = f"operands::align<uint{8 * matrix.element_size()}_t>"
    strides = matrix.stride(0), matrix.stride(span_dim), matrix.stride(3 - span_dim)
    launches = by_patches(_SOURCE, kernel, batch, span, k, (matrix, room, span, k, pitch, strides))
    rows = room[:, :, :k].expand(matrix.shape[0], span, k)
    return rows if span_dim == 1 else rows.transpose(1, 2), launches


def by_patches(source, kernel, batch, span, k, arguments):
    """The launch of a kernel over (batch, span, K); none if that is empty."""
    blocks = batch * ceil_div(span, PATCH) * ceil_div(k, PATCH)
    return [CudaLaunch(source, kernel, (blocks,), (THREADS, 1, 1), arguments)] if blocks else []


def shifted(out):
    """Whether rows, of a matrix or a batch, are contiguous, but do not all begin on 16 bytes (gemm/parts/shifted_rows.cuh)."""
    *others, step = out.stride()
    apart = (stride for stride, size in zip(others, out.shape) if size > 1)
    return step == 1 and (out.data_ptr() % 16 > 0 or any(stride % 4 for stride in apart))
