// The threads of one block, run as fibers in turn on one OS thread, and the rendezvous that barriers, votes, shuffles
// and WMMA are made of.
//
// A thread runs until it must wait for others or exits. Who exits hands its fiber to the next thread that has not
// begun, so a kernel that never waits needs one fiber and no switch. When nobody can go on and not everybody has
// exited, the block has diverged: an error.
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
// Done once for all threads of a rendezvous, by the last to arrive. Its address also tells kinds of rendezvous apart.
using Meet = void (*)(Thread* first, int count, unsigned mask);

struct Thread {
    enum State { UNSTARTED, RUNNABLE, WAITING, EXITED };
    State state;
    Fiber* fiber;
    uint3 index;
    Meet meet;         // while WAITING: for what,
    const char* name;  // called what,
    unsigned mask;     // with which lanes of the warp; 0: with the whole block
    void* operand;     // and what it brought
    bool (*ready)(void* operand);  // if not null, asked again and again whether the wait is over
    bool fenced;         // __threadfence() since it last met the block: what the block wrote before, others may now see
    bool proxy_unfenced;  // cp.async has landed for it in shared memory with no fence.proxy.async since
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
    static inline thread_local uint64_t count = 0;  // of blocks that this OS thread has begun

    Block(const Body& kernel, dim3 shape, const uint64_t* seed);
    ~Block();
    Block(const Block&) = delete;

    void run(uint64_t number);

    Thread& self() { return *self_; }
    bool in_thread() const { return self_ != nullptr; }
    int rank() const { return int(self_ - threads_.data()); }
    int warp_lanes() const;

    // Returns once every thread of the block has come, after the last of them has done `meet`.
    void wait_block(const char* name, Meet meet, void* operand);

    // Returns once every lane that `mask` names has come with the same mask, after the last of them has done `meet`.
    void wait_warp(const char* name, Meet meet, unsigned mask, void* operand);

    // The same for the 4 warps of a warpgroup.
    void wait_warpgroup(const char* name, Meet meet, void* operand);

    // Returns once `ready` says so, of what other threads have done.
    void wait_until(const char* name, bool (*ready)(void* operand), void* operand);

    // wgmma and TMA reach shared memory by another way (the async proxy) than cp.async's and plain stores, and see what these
    // wrote after fence.proxy.async alone. Of plain stores the emulation knows nothing.
    void wrote_to_shared() {
        proxy_unfenced_ += !self_->proxy_unfenced;
        self_->proxy_unfenced = true;
    }
    void fence_proxy() {
        proxy_unfenced_ -= self_->proxy_unfenced;
        self_->proxy_unfenced = false;
    }
    bool proxy_sees_all() const { return proxy_unfenced_ == 0; }

    // Ends the running thread, and with it the launch, wherever it is.
    [[noreturn]] void abandon(const std::string& why);

    // By chance in a random order, else never.
    bool flip() { return seed_ != nullptr && random_() % 2 != 0; }

private:
    // A mask of 0 names all.
    void wait_for(Thread* group, int count, Meet meet, unsigned mask);

    void begin_round();
    Thread* next();  // of this round, that can run
    void enter(Thread& thread);
    void resume(Thread& thread);
    void wait(const char* name, Meet meet, unsigned mask, void* operand);
    void yield();
    static void fiber_main();
    Fiber* take_fiber();
    // "3 threads wait at __syncthreads: (0, 0, 0), (1, 0, 0), (2, 0, 0); 1 thread exited: (3, 0, 0)"
    std::string census() const;

    const Body& kernel_;
    std::vector<Thread> threads_;
    std::vector<size_t> order_;
    const uint64_t* seed_;  // null: in thread order
    Chance random_;
    std::deque<Fiber> fibers_;  // the first `begun_` of them run in this launch;
    std::vector<Fiber*> idle_;  // these of them have no thread now
    size_t begun_ = 0;
    Fiber scheduler_;
    Thread* self_ = nullptr;
    Meet barrier_ = nullptr;
    size_t cursor_ = 0, exited_ = 0, at_barrier_ = 0, proxy_unfenced_ = 0;
    bool progress_ = false;
    std::exception_ptr error_;
};

}  // namespace simt
