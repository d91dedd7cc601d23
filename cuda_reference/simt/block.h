// The threads of one block, run as fibers in turn on one OS thread, and the rendezvous behind barriers, votes, shuffles and
// WMMA; and the blocks of a cluster, which take turns on that OS thread.
//
// A thread runs until it must wait for others or exits. On exit its fiber goes to the next thread that has not begun, so a
// kernel that never waits needs one fiber and no switch. If no thread can run and not all have exited, the block has diverged:
// an error.
#pragma once
#include <deque>
#include <exception>
#include <vector>

#include "chance.h"
#include "fiber.h"
#include "vector_types.h"

constexpr int warpSize = 32;
inline thread_local uint3 threadIdx{}, blockIdx{};
inline thread_local dim3 blockDim, gridDim;

namespace simt {

struct Thread;
// Called once for all threads of a rendezvous, by the last to arrive. Its address also identifies the kind of rendezvous.
using Exchange = void (*)(Thread* first, int count, unsigned mask);

struct Thread {
    enum State { UNSTARTED, RUNNABLE, WAITING, EXITED };
    State state;
    Fiber* fiber;
    uint3 index;
    Exchange exchange;  // while WAITING: the rendezvous,
    const char* name;   // its name,
    unsigned mask;      // the lanes of the warp that take part; 0: the whole block
    void* operand;      // and this thread's operand
    bool (*ready)(void* operand);  // if not null, polled until the wait is over
    bool fenced;          // __threadfence() since its last barrier: other blocks see what this one wrote before
    bool proxy_unfenced;  // a cp.async of it has landed in shared memory without fence.proxy.async since
};

std::string text(uint3 v);  // "(1, 0, 0)"

// What every thread of a launch runs: a function object, which must live as long. <functional> would take g++ longer.
class Body {
public:
    template <class Object> Body(const Object& object)
        : object_(&object),
          call_([](const void* object) { (*static_cast<const Object*>(object))(); }) {}

    void operator()() const { call_(object_); }

private:
    const void* object_;
    void (*call_)(const void* object);
};

constexpr int MOST_THREADS = 1024, MOST_BLOCKS = 8;  // of a block, of a cluster
struct Cluster;

class Block {
public:
    static inline thread_local Block* current = nullptr;

    Block(const Body& kernel, dim3 shape, const uint64_t* seed, Cluster& cluster, int cluster_rank);
    ~Block();
    Block(const Block&) = delete;

    void begin(uint64_t number);
    bool round();  // lets each thread run that can; whether one could
    bool ended() const { return exited_ == threads_.size(); }

    Thread& self() { return *self_; }
    bool in_thread() const { return self_ != nullptr; }
    int rank() const { return int(self_ - threads_.data()); }
    int slot() const { return cluster_rank_ * MOST_THREADS + rank(); }  // which no other thread of the cluster has
    int cluster_rank() const { return cluster_rank_; }
    uint64_t serial() const { return serial_; }                  // which no other block has on this OS thread
    int warp_lanes() const;

    // Another block of the cluster, or this one.
    Block& peer(int rank);
    // Where this block has what the running block has at an address of dynamic_shared_memory.
    unsigned char* there(const void* pointer);
    // Copies to it that other blocks have requested and that have not landed.
    size_t landing = 0;

    // Returns once every thread of the block has arrived, after the last one has called `exchange`.
    void wait_block(const char* name, Exchange exchange, void* operand);

    // Returns once every lane in `mask` has arrived with the same mask, after the last one has called `exchange`.
    void wait_warp(const char* name, Exchange exchange, unsigned mask, void* operand);

    // The same for the 4 warps of a warpgroup.
    void wait_warpgroup(const char* name, Exchange exchange, void* operand);

    // Returns once every thread of the cluster has arrived. Unlike hardware's it waits for those that have exited, too.
    void wait_cluster(const char* name);

    // Returns once `ready` is true, by what other threads have done.
    void wait_until(const char* name, bool (*ready)(void* operand), void* operand);

    // wgmma and TMA access shared memory through the async proxy, and see the writes of cp.async and of plain stores only after
    // fence.proxy.async. The emulation does not track plain stores.
    void wrote_to_shared() {
        proxy_unfenced_ += !self_->proxy_unfenced;
        self_->proxy_unfenced = true;
    }
    void fence_proxy() {
        proxy_unfenced_ -= self_->proxy_unfenced;
        self_->proxy_unfenced = false;
    }
    bool proxy_sees_all() const { return proxy_unfenced_ == 0; }

    // Ends the running thread, wherever it is, and with it the launch.
    [[noreturn]] void abandon(const std::string& why);

    // Random with a seed, else always false.
    bool flip() { return seed_ != nullptr && random_() % 2 != 0; }

    std::string fault() const;  // in the end: what went wrong, or ""

private:
    // A mask of 0 means all.
    void wait_for(Thread* group, int count, Exchange exchange, unsigned mask);

    void begin_round();
    Thread* next();  // of this round, that can run
    void enter(Thread& thread);
    void resume(Thread& thread);
    void wait(const char* name, Exchange exchange, unsigned mask, void* operand);
    void yield();
    static void fiber_main();
    Fiber* take_fiber();
    // "3 threads wait at __syncthreads: (0, 0, 0), (1, 0, 0), (2, 0, 0); 1 thread exited: (3, 0, 0)"
    std::string states() const;

    const Body& kernel_;
    Cluster& cluster_;
    const int cluster_rank_;
    uint3 index_{};
    uint64_t serial_ = 0;
    std::vector<unsigned char> kept_;  // its shared memory, while another block of the cluster runs
    std::vector<Thread> threads_;
    std::vector<size_t> order_;
    const uint64_t* seed_;  // null: in thread order
    Chance random_;
    std::deque<Fiber> fibers_;  // the first `begun_` run in this launch;
    std::vector<Fiber*> idle_;  // those without a thread now
    size_t begun_ = 0;
    Fiber scheduler_;
    Thread* self_ = nullptr;
    Exchange barrier_ = nullptr;
    size_t cursor_ = 0, exited_ = 0, at_barrier_ = 0, proxy_unfenced_ = 0;
    bool progress_ = false;
    std::exception_ptr error_;
};

// dynamic_shared_memory is that of the block in turn. Other variables in shared memory are not kept: a kernel in clusters must
// not have any.
struct Cluster {
    std::deque<Block> blocks;
    const size_t shared_bytes;
    Block* in_turn = nullptr;
    size_t arrived = 0, phase = 0;  // of its barrier

    Cluster(const Body& kernel, dim3 shape, int size, size_t shared_bytes, const uint64_t* seed);
    void run(uint64_t first);  // the blocks of this number and the next
};

}  // namespace simt
