// The threads of one block, run as fibers in turn on one OS thread, and the rendezvous behind barriers, votes, shuffles and
// WMMA.
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

class Block {
public:
    static inline thread_local Block* current = nullptr;
    static inline thread_local uint64_t count = 0;  // how many blocks this OS thread has begun

    Block(const Body& kernel, dim3 shape, const uint64_t* seed);
    ~Block();
    Block(const Block&) = delete;

    void run(uint64_t number);

    Thread& self() { return *self_; }
    bool in_thread() const { return self_ != nullptr; }
    int rank() const { return int(self_ - threads_.data()); }
    int warp_lanes() const;

    // Returns once every thread of the block has arrived, after the last one has called `exchange`.
    void wait_block(const char* name, Exchange exchange, void* operand);

    // Returns once every lane in `mask` has arrived with the same mask, after the last one has called `exchange`.
    void wait_warp(const char* name, Exchange exchange, unsigned mask, void* operand);

    // The same for the 4 warps of a warpgroup.
    void wait_warpgroup(const char* name, Exchange exchange, void* operand);

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

}  // namespace simt
