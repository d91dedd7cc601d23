"""Broken code for GPUs that the emulation replaces by code of its own: inline assembly, and what the host tells CUDA."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/common/cp_async.cuh",
        "test_assembly",
        (
            "tails copied instead of zeroed",
            '[%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid)',
            '[%0], [%1], 16;" ::"r"(to), "l"(from)',
        ),
        ("tails of 8 bytes copied", "[%0], [%1], %3, %2;", "[%0], [%1], %3;"),
        (
            "waits for one group too few",
            '"cp.async.wait_group %0;" ::"n"(PENDING)',
            '"cp.async.wait_group %0;" ::"n"(PENDING + 1)',
        ),
        (
            "a commit that the compiler may move",
            'asm volatile("cp.async.commit_group;" ::: "memory")',
            'asm volatile("cp.async.commit_group;")',
        ),
    ),
    *of(
        "cuda_reference/common/mbarrier.cuh",
        "test_assembly",
        ("a wait that tries once", '        "@!ended bra again;\\n"\n', ""),
        ("a wait that loops once it has ended", "@!ended bra", "@ended bra"),
        ("arrivals lost", '"r"(shared_address(barrier)), "r"(arrivals)', '"r"(shared_address(barrier)), "n"(1)'),
        ("arrival at the own block", "mapa.shared::cluster.u32 there, %0, %1;", "mov.u32 there, %0;"),
        (
            "bytes announced without an arrival",
            "mbarrier.arrive.expect_tx.shared::cta.b64 _,",
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64",
        ),
        (
            "an exchange that releases nothing",
            "barrier.cluster.arrive.release.aligned",
            "barrier.cluster.arrive.relaxed.aligned",
        ),
    ),
    *of(
        "cuda_reference/common/mma_sync.cuh",
        "test_assembly",
        ("bf16 multiplied as fp16", "f32.bf16.bf16.f32", "f32.f16.f16.f32"),
        ("unsigned bytes multiplied as signed", "s32.u8.u8.s32", "s32.s8.s8.s32"),
        ("fp64 before Hopper by the same B twice", '"d"(i / 2 ? b1 : b0)', '"d"(b0)'),
        (
            "tf32 truncated before Hopper",
            'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(value) : "f"(__uint_as_float(value) + 0.0f));',
            "",
        ),
    ),
    *of("cuda_reference/common/ldmatrix.cuh", "test_assembly", ("two matrices as they lie", "x2.trans", "x2")),
    *of("cuda_reference/common/stmatrix.cuh", "test_assembly", ("transposed as it lies", '(".trans")', '("")')),
    *of(
        "cuda_reference/common/tma.cuh",
        "test_assembly",
        ("rows and columns of a store swapped", "[%0, {%2, %3, %4}]", "[%0, {%3, %2, %4}]"),
        ("a store's place written while it is read", "wait_group.read %0", "wait_group.read 7"),
        ("boxes of one block alone", '"h"((unsigned short)blocks)', '"h"((unsigned short)1)'),
    ),
    *of(
        "cuda_reference/common/wgmma.cuh",
        "test_assembly",
        ("A across K taken as along it", '"n"(!A_K_MAJOR)', '"n"(!B_K_MAJOR)'),
        ("fp8 of two types taken as one", '"k32.f32.e4m3.e5m2"', '"k32.f32.e4m3.e4m3"'),
        ("sums added where a new one begins", 'SUMS : "l"(a), "l"(b), "n"(ADDS)', 'SUMS : "l"(a), "l"(b), "n"(1)'),
        ("16-bit sums added where a new one begins", '"n"(!B_K_MAJOR), "n"(ADDS)', '"n"(!B_K_MAJOR), "n"(1)'),
        ("a barrier of too few threads", "bar.sync %0, 128", "bar.sync %0, 96"),
    ),
    *of(
        "cuda_reference/common/wgmma_text.cuh",
        "test_assembly",
        ("a sum twice", "WGMMA_SUMS_17(D), D(17)", "WGMMA_SUMS_17(D), D(16)"),
    ),
    *of(
        "cuda_reference/common/last_to_arrive.cuh",
        "test_assembly",
        ("an arrival without order", "gpu.acq_rel.add", "gpu.relaxed.add"),
    ),
    *of(
        "cuda_reference/common/cache_hint.cuh",
        "test_assembly",
        ("the policy unused", ".L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;", ".v4.u32 {%0, %1, %2, %3}, [%4];"),
    ),
    *of(
        "cuda_reference/common/encode.cuh",
        "test_host_code",
        ("no swizzle", "NONE, CU_TENSOR_MAP_SWIZZLE_128B", "NONE, CU_TENSOR_MAP_SWIZZLE_64B"),
        ("a pitch in elements", "cuuint64_t(t.strides[1] * t.element_bytes)", "cuuint64_t(t.strides[1])"),
        (
            "fp32 not rounded to tf32",
            "t.to_tf32              ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32",
            "t.to_tf32              ? CU_TENSOR_MAP_DATA_TYPE_UINT32",
        ),
    ),
    *of(
        "cuda_reference/common/launch.cuh",
        "test_host_code",
        ("more shared memory not asked for", "shared_bytes > DEFAULT", "shared_bytes > 2 * DEFAULT"),
        ("kernels overlap that do not wait", "overlaps ? 1u : 0u", "1u"),
    ),
    *of(
        "cuda_reference/simt/launch.cpp",
        "test_threads",
        ("writes behind shared memory allowed", "            check_behind(shared_bytes);\n", ""),
        ("what lies behind shared memory kept from launch to launch", "            poison_behind(shared_bytes);\n", ""),
    ),
    *of(
        "cuda_reference/conv2d/prefetched.py",
        "cuda_reference and prefetched",
        ("8 bytes of shared memory too few", 'config["KT"] * 4)', 'config["KT"] * 4) - 8'),
    ),
]
