// Records the accesses of kernel threads to shared memory and to given ranges of global memory, in a build with
// -fsanitize=thread. Such a build calls functions like __tsan_read4(address) before every access; they are defined here, and
// the sanitizer's runtime, libtsan, is not linked.
//
// Everything that the callbacks call must be compiled without callbacks, so they use no templates of the standard library.
#ifdef SIMT_TRACE
#include "trace_recorder.h"

#include <cstdlib>

#include "../common/python.cuh"
#include "launch.h"
#include "trace.h"

#define SIMT_UNTRACED __attribute__((no_sanitize("thread"), noinline))

extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));  // where the linker put the module

namespace simt::trace {

struct Record {
    uint64_t address;
    uint32_t site;  // the instruction's offset in the module
    uint32_t block;
    uint32_t interval, warp_interval;  // barriers that the thread has passed in this block
    uint16_t thread;
    uint8_t width, kind;
    uint32_t unused;
};

enum Kind { READ, WRITE, ATOMIC };

struct Range {
    uint64_t first, end;
};

constexpr size_t MOST_RECORDS = size_t(1) << 25;  // 1 GiB
constexpr size_t MOST_RANGES = 64;

static bool recording = false, full = false;
static Range ranges[MOST_RANGES];
static size_t range_count = 0;
static Record* records = nullptr;
static size_t record_count = 0, capacity = 0;
static uint32_t intervals[1024], warp_intervals[1024];

SIMT_UNTRACED static unsigned rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

SIMT_UNTRACED static void record(const volatile void* pointer, size_t width, Kind kind, const void* site) {
    if (!recording) return;
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    size_t i = 0;
    while (i < range_count && (address < ranges[i].first || address >= ranges[i].end)) ++i;
    if (i == range_count) return;
    if (record_count == capacity) {
        const size_t more = capacity == 0 ? size_t(1) << 16 : 2 * capacity;
        void* moved = more > MOST_RECORDS ? nullptr : std::realloc(records, more * sizeof(Record));
        full = moved == nullptr;
        recording = !full;
        if (full) return;
        records = static_cast<Record*>(moved);
        capacity = more;
    }
    Record& to = records[record_count++];
    const unsigned thread = rank();
    to.address = address;
    to.site = uint32_t(static_cast<const char*>(site) - 1 - __ehdr_start);  // the call's address, not the return address
    to.block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    to.interval = intervals[thread];
    to.warp_interval = warp_intervals[thread];
    to.thread = uint16_t(thread);
    to.width = uint8_t(width);
    to.kind = uint8_t(kind);
}

// A copy of a struct, in the widest words that its address and size allow.
SIMT_UNTRACED static void record_range(const void* pointer, size_t size, Kind kind, const void* site) {
    const char* at = static_cast<const char*>(pointer);
    while (size > 0) {
        size_t width = 16;
        while (width > size || reinterpret_cast<uint64_t>(at) % width != 0) width /= 2;
        record(at, width, kind, site);
        at += width, size -= width;
    }
}

// (first, end, first, end, ...): the ranges to record. Both functions are Python's.
static PyObject* begin(PyObject*, PyObject* const* bounds, Py_ssize_t count) {
    return binding::guarded([&] {
        if (size_t(count) > 2 * MOST_RANGES) throw std::invalid_argument("too many ranges of memory to trace");
        for (Py_ssize_t i = 0; i < count; ++i)
            (i % 2 ? ranges[i / 2].end : ranges[i / 2].first) = binding::to_address(bounds[i], {"bound", int(i)});
        range_count = size_t(count) / 2;
        record_count = 0;
        full = false;
        recording = true;
        return Py_NewRef(Py_None);
    });
}

static PyObject* end(PyObject*, PyObject* const*, Py_ssize_t) {
    return binding::guarded([] {
        recording = false;
        const size_t bytes = full ? 0 : record_count * sizeof(Record);
        PyObject* const result = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(records), Py_ssize_t(bytes));
        std::free(records);
        records = nullptr;
        capacity = 0;
        if (full)
            throw std::runtime_error("more than " + std::to_string(MOST_RECORDS) + " accesses: trace a smaller problem");
        return result;
    });
}

static PyObject* shared_address(PyObject*, PyObject* const*, Py_ssize_t) {
    return PyLong_FromVoidPtr(dynamic_shared_memory);
}

}  // namespace simt::trace

namespace simt {

SIMT_UNTRACED void trace_block() {
    std::memset(trace::intervals, 0, sizeof trace::intervals);
    std::memset(trace::warp_intervals, 0, sizeof trace::warp_intervals);
}
SIMT_UNTRACED void trace_barrier() { ++trace::intervals[trace::rank()]; }
SIMT_UNTRACED void trace_warp_barrier() { ++trace::warp_intervals[trace::rank()]; }

SIMT_UNTRACED void trace_copy(const void* to, size_t to_bytes, const void* from, size_t from_bytes) {
    trace::record_range(from, from_bytes, trace::READ, __builtin_return_address(0));
    trace::record_range(to, to_bytes, trace::WRITE, __builtin_return_address(0));
}

SIMT_UNTRACED void untraced_copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace simt

void bind_trace(PyObject* module) {
    binding::add_function(module, "trace_begin", simt::trace::begin, nullptr);
    binding::add_function(module, "trace_end", simt::trace::end, nullptr);
    binding::add_function(module, "trace_shared", simt::trace::shared_address, nullptr);
}

extern "C" {
#define SIMT_TRACE_ACCESS(NAME, WIDTH, KIND)                                                  \
    SIMT_UNTRACED void __tsan_##NAME(void* address) {                                         \
        simt::trace::record(address, WIDTH, simt::trace::KIND, __builtin_return_address(0));  \
    }
#define SIMT_TRACE_WIDTH(WIDTH)                            \
    SIMT_TRACE_ACCESS(read##WIDTH, WIDTH, READ)            \
    SIMT_TRACE_ACCESS(write##WIDTH, WIDTH, WRITE)          \
    SIMT_TRACE_ACCESS(unaligned_read##WIDTH, WIDTH, READ)  \
    SIMT_TRACE_ACCESS(unaligned_write##WIDTH, WIDTH, WRITE)
SIMT_TRACE_WIDTH(1)
SIMT_TRACE_WIDTH(2)
SIMT_TRACE_WIDTH(4)
SIMT_TRACE_WIDTH(8)
SIMT_TRACE_WIDTH(16)

SIMT_UNTRACED void __tsan_read_range(void* address, size_t size) {
    simt::trace::record_range(address, size, simt::trace::READ, __builtin_return_address(0));
}
SIMT_UNTRACED void __tsan_write_range(void* address, size_t size) {
    simt::trace::record_range(address, size, simt::trace::WRITE, __builtin_return_address(0));
}

// The build replaces atomics by calls, so these perform them too. A load is not recorded: it begins a read-modify-write.
#define SIMT_TRACE_MODIFY(BITS, T, NAME, BUILTIN)                                                              \
    SIMT_UNTRACED T __tsan_atomic##BITS##_##NAME(volatile T* to, T value, int) {                               \
        simt::trace::record(to, BITS / 8, simt::trace::ATOMIC, __builtin_return_address(0));                   \
        return BUILTIN(to, value, __ATOMIC_SEQ_CST);                                                           \
    }
#define SIMT_TRACE_CAS(BITS, T, NAME)                                                                          \
    SIMT_UNTRACED bool __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* to, T* old, T value, int, int) { \
        simt::trace::record(to, BITS / 8, simt::trace::ATOMIC, __builtin_return_address(0));                   \
        return __atomic_compare_exchange_n(to, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
    }
#define SIMT_TRACE_ATOMICS(BITS, T)                                                                            \
    SIMT_UNTRACED T __tsan_atomic##BITS##_load(const volatile T* from, int) {                                  \
        return __atomic_load_n(from, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                          \
    SIMT_UNTRACED void __tsan_atomic##BITS##_store(volatile T* to, T value, int) {                             \
        simt::trace::record(to, BITS / 8, simt::trace::ATOMIC, __builtin_return_address(0));                   \
        __atomic_store_n(to, value, __ATOMIC_SEQ_CST);                                                         \
    }                                                                                                          \
    SIMT_TRACE_MODIFY(BITS, T, exchange, __atomic_exchange_n)                                                  \
    SIMT_TRACE_MODIFY(BITS, T, fetch_add, __atomic_fetch_add)                                                  \
    SIMT_TRACE_MODIFY(BITS, T, fetch_sub, __atomic_fetch_sub)                                                  \
    SIMT_TRACE_MODIFY(BITS, T, fetch_and, __atomic_fetch_and)                                                  \
    SIMT_TRACE_MODIFY(BITS, T, fetch_or, __atomic_fetch_or)                                                    \
    SIMT_TRACE_MODIFY(BITS, T, fetch_xor, __atomic_fetch_xor)                                                  \
    SIMT_TRACE_CAS(BITS, T, strong)                                                                            \
    SIMT_TRACE_CAS(BITS, T, weak)
SIMT_TRACE_ATOMICS(8, uint8_t)
SIMT_TRACE_ATOMICS(16, uint16_t)
SIMT_TRACE_ATOMICS(32, uint32_t)
SIMT_TRACE_ATOMICS(64, uint64_t)

SIMT_UNTRACED void __tsan_init() {}
SIMT_UNTRACED void __tsan_func_entry(void*) {}
SIMT_UNTRACED void __tsan_func_exit() {}
SIMT_UNTRACED void __tsan_vptr_update(void**, void*) {}
SIMT_UNTRACED void __tsan_vptr_read(void**) {}
SIMT_UNTRACED void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
SIMT_UNTRACED void __tsan_atomic_signal_fence(int) {}
}
#endif
