// A launch: the blocks or clusters of the grid, spread over OS threads (launch.h).
#include "cuda_runtime.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "tensors.h"
#include "trace.h"

namespace simt {

// The segment of this module with dynamic_shared_memory and the other __shared__ variables: this OS thread's thread-local
// variables, or static ones.
static Range shared_segment() {
    struct Search {
        uintptr_t address;
        Range found;
    } search{reinterpret_cast<uintptr_t>(dynamic_shared_memory), {0, 0}};
    const auto look = [](dl_phdr_info* module, size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        for (int i = 0; i < module->dlpi_phnum; ++i) {
            const auto& part = module->dlpi_phdr[i];
            if (part.p_type != PT_TLS && part.p_type != PT_LOAD) continue;
            const uintptr_t first =
                part.p_type == PT_TLS ? reinterpret_cast<uintptr_t>(module->dlpi_tls_data) : module->dlpi_addr + part.p_vaddr;
            if (search.address - first < part.p_memsz) search.found = {first, first + part.p_memsz};
        }
        return 0;
    };
    dl_iterate_phdr(look, &search);
    return search.found;
}

void check_inside(const char* what, const void* pointer, size_t bytes) {
    const auto first = reinterpret_cast<uintptr_t>(pointer);
    for (const Range& range : tensors)
        if (first >= range.first && first + bytes <= range.end) return;
    if (tensors.empty()) return;
    static thread_local const Range shared = shared_segment();
    if (first < shared.first || first + bytes > shared.end) fail(std::string(what) + " outside of every tensor of the launch");
}

static const char* setting(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

static unsigned os_threads(uint64_t clusters) {
#if defined(__SANITIZE_ADDRESS__) || defined(SIMT_TRACE)
    (void)clusters;
    return 1;  // there __shared__ is one array for the whole process; the recorder supports one thread
#else
    const char* wanted = setting("SIMT_THREADS");
    const int count = wanted != nullptr ? std::atoi(wanted) : int(std::thread::hardware_concurrency());
    return unsigned(std::min<uint64_t>(std::max(count, 1), clusters));
#endif
}

// 0xFF in every byte is a NaN in every floating type, so that a read of unwritten shared memory shows in the result.
static void fresh_shared(size_t bytes) { std::memset(dynamic_shared_memory, 0xFF, bytes); }

// What lies behind the bytes that a launch asked for: on a GPU an access there is an error, or reaches another block's memory.
// A read gets NaNs; a write is found in the end.
static void poison_behind(size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(dynamic_shared_memory, SIMT_SHARED_LIMIT);
    __asan_poison_memory_region(dynamic_shared_memory + bytes, SIMT_SHARED_LIMIT - bytes);
#else
    std::memset(dynamic_shared_memory + bytes, 0xFF, SIMT_SHARED_LIMIT - bytes);
#endif
}

static void check_behind(size_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(SIMT_TRACE)  // a trace would have the reads
    const unsigned char *first = dynamic_shared_memory + bytes, *end = dynamic_shared_memory + SIMT_SHARED_LIMIT;
    if (first == end || (*first == 0xFF && std::memcmp(first, first + 1, end - first - 1) == 0)) return;
    while (*first == 0xFF) ++first;
    fail("byte " + std::to_string(first - dynamic_shared_memory) + " of dynamic shared memory was written, and the launch asked for " +
         std::to_string(bytes));
#else
    (void)bytes;
#endif
}

static std::map<const void*, unsigned> most_threads, cluster_sizes;  // of a kernel

void at_most(const void* kernel, unsigned threads) { most_threads[kernel] = threads; }
void in_clusters(const void* kernel, unsigned blocks) { cluster_sizes[kernel] = blocks; }

static void check_shape(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes, unsigned cluster) {
    const auto refuse = [](const std::string& what) {
        throw std::runtime_error("cudaErrorInvalidConfiguration: " + what);
    };
    const uint64_t threads = uint64_t(block.x) * block.y * block.z;
    if (threads == 0 || threads > 1024 || block.z > 64)
        refuse("block " + text(block) + " is not 1 to 1024 threads with z at most 64");
    const auto bound = most_threads.find(kernel);
    if (bound != most_threads.end() && threads > bound->second)
        refuse("block " + text(block) + " has more threads than the kernel's __launch_bounds__(" + std::to_string(bound->second) + ")");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
        refuse("grid " + text(grid) + " is not within (1..2^31-1, 1..65535, 1..65535)");
    if (cluster < 1 || cluster > MOST_BLOCKS || grid.x % cluster != 0)
        refuse("grid " + text(grid) + " in clusters of " + std::to_string(cluster) + " blocks; only 1 and 2 are emulated");
#ifdef SIMT_TRACE
    if (cluster > 1) refuse("blocks in clusters are not traced");
#endif
    if (shared_bytes > SIMT_SHARED_LIMIT)
        refuse(std::to_string(shared_bytes) + " bytes of shared memory; a block can have 232448");
}

void run_grid(const void* address, const Body& kernel, dim3 grid, dim3 block, size_t shared_bytes) {
    const auto found = cluster_sizes.find(address);
    const unsigned size = found == cluster_sizes.end() ? 1 : found->second;
    check_shape(address, grid, block, shared_bytes, size);
    const uint64_t clusters = uint64_t(grid.x) * grid.y * grid.z / size;
    const char* order = setting("SIMT_ORDER");
    const uint64_t seed = order != nullptr ? std::strtoull(order, nullptr, 10) : 0;
    std::vector<uint64_t> shuffled(order != nullptr ? clusters : 0);
    std::iota(shuffled.begin(), shuffled.end(), uint64_t(0));
    if (order != nullptr) Chance{seed}.shuffle(shuffled);

#ifdef __SANITIZE_ADDRESS__
    static std::mutex one_launch;
    std::lock_guard<std::mutex> alone(one_launch);
#endif
    std::atomic<uint64_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    const auto work = [&, given = tensors] {
        try {
            tensors = given;
            Cluster cluster(kernel, block, int(size), shared_bytes, order != nullptr ? &seed : nullptr);
            blockDim = block;
            gridDim = grid;
            poison_behind(shared_bytes);
            for (uint64_t i; (i = next++) < clusters;) {
                fresh_shared(shared_bytes);
                trace_block();
                cluster.run((order != nullptr ? shuffled[i] : i) * size);
            }
            check_behind(shared_bytes);
        } catch (...) {
            next = clusters;  // begin no further one
            std::lock_guard<std::mutex> lock(mutex);
            if (!error) error = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    try {
        for (unsigned i = os_threads(clusters); i > 1; --i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
        // the machine has no more threads: the existing ones run all blocks
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace simt
