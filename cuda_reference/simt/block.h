// The threads of one block, run as fibers in turn on one OS thread, and the rendezvous that barriers, votes, shuffles
// and WMMA are made of.
//
// A thread runs until it must wait for others or exits. Who exits hands its fiber to the next thread that has not
// begun, so a kernel that never waits needs one fiber and no switch. When nobody can go on and not everybody has
// exited, the block has diverged: an error.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
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

inline std::string text(uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

class Block {
public:
    static inline thread_local Block* current = nullptr;
    static inline thread_local uint64_t count = 0;  // of blocks that this OS thread has begun

    Block(const std::function<void()>& kernel, dim3 shape, const uint64_t* seed)
        : kernel_(kernel),
          threads_(shape.x * shape.y * shape.z),
          seed_(seed) {
        uint3 index{0, 0, 0};
        for (Thread& thread : threads_) {
            thread.index = index;
            order_.push_back(order_.size());
            if (++index.x == shape.x) index.x = 0, ++index.y;
            if (index.y == shape.y) index.y = 0, ++index.z;
        }
        current = this;
        std::lock_guard<std::mutex> lock(pool_mutex_);
        if (pool_.empty()) return;
        fibers_ = std::move(pool_.back());
        pool_.pop_back();
    }

    ~Block() {
        current = nullptr;
        std::lock_guard<std::mutex> lock(pool_mutex_);
        pool_.push_back(std::move(fibers_));
    }

    Block(const Block&) = delete;

    void run(uint64_t number) {
        ++count;
        for (Thread& thread : threads_) {
            thread.state = Thread::UNSTARTED;
            thread.fenced = thread.proxy_unfenced = false;
        }
        exited_ = at_barrier_ = proxy_unfenced_ = 0;
        if (seed_ != nullptr) random_ = {*seed_ * 0x9E3779B97F4A7C15u + number};
        do {
            begin_round();
            while (Thread* thread = next()) resume(*thread);
        } while (progress_ && exited_ < threads_.size());
        if (exited_ < threads_.size()) throw std::runtime_error("block " + text(blockIdx) + " diverged: " + census());
    }

    Thread& self() { return *self_; }
    bool in_thread() const { return self_ != nullptr; }
    int rank() const { return int(self_ - threads_.data()); }
    int warp_lanes() const { return std::min<int>(warpSize, int(threads_.size()) - rank() / warpSize * warpSize); }

    // Returns once every thread of the block has come, after the last of them has done `meet`.
    void wait_block(const char* name, Meet meet, void* operand) {
        if (at_barrier_ > 0 && barrier_ != meet)
            fail(std::string("comes to ") + name + " while other threads of its block wait: " + census());
        barrier_ = meet;
        wait(name, meet, 0, operand);
        if (++at_barrier_ < threads_.size()) return yield();
        at_barrier_ = 0;
        meet(threads_.data(), int(threads_.size()), 0);
        for (Thread& thread : threads_) {
            thread.state = Thread::RUNNABLE;
            thread.fenced = false;
        }
    }

    // Returns once every lane that `mask` names has come with the same mask, after the last of them has done `meet`.
    void wait_warp(const char* name, Meet meet, unsigned mask, void* operand) {
        const int lane = rank() % warpSize, lanes = warp_lanes();
        if (!(mask >> lane & 1)) fail(std::string(name) + " with a mask that does not name the calling lane");
        if (lanes < warpSize) mask &= (1u << lanes) - 1;  // lanes that the block does not have
        wait(name, meet, mask, operand);
        wait_for(&threads_[rank() - lane], lanes, meet, mask);
    }

    // The same for the 4 warps of a warpgroup.
    void wait_warpgroup(const char* name, Meet meet, void* operand) {
        constexpr int SIZE = 4 * warpSize;
        const int first = rank() / SIZE * SIZE;
        if (first + SIZE > int(threads_.size()))
            fail(std::string(name) + " needs 4 warps; the block's last warpgroup has fewer");
        wait(name, meet, 0, operand);
        wait_for(&threads_[first], SIZE, meet, 0);
    }

    // Returns once `ready` says so, of what other threads have done.
    void wait_until(const char* name, bool (*ready)(void* operand), void* operand) {
        if (ready(operand)) return;
        wait(name, nullptr, 0, operand);
        self_->ready = ready;
        yield();
        self_->state = Thread::RUNNABLE;
    }

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
    [[noreturn]] void abandon(const std::string& why) {
        error_ = std::make_exception_ptr(std::runtime_error(place() + why));
        self_->state = Thread::EXITED;
        ++exited_;
        Fiber::change(*self_->fiber, scheduler_);
        __builtin_unreachable();
    }

    // By chance in a random order, else never.
    bool flip() { return seed_ != nullptr && random_() % 2 != 0; }

private:
    // A mask of 0 names all.
    void wait_for(Thread* group, int count, Meet meet, unsigned mask) {
        const auto named = [mask](int i) { return mask == 0 || (mask >> i & 1); };
        for (int i = count - 1; i >= 0; --i)  // downwards: threads mostly come upwards, so an absent one is found at once
            if (named(i))
                if (group[i].state != Thread::WAITING || group[i].meet != meet || group[i].mask != mask) return yield();
        meet(group, count, mask);
        for (int i = 0; i < count; ++i)
            if (named(i)) group[i].state = Thread::RUNNABLE;
    }

    void begin_round() {
        if (seed_ != nullptr) random_.shuffle(order_);
        cursor_ = 0;
        progress_ = false;
    }

    // The next thread of this round that can run.
    Thread* next() {
        while (cursor_ < order_.size()) {
            Thread& thread = threads_[order_[cursor_++]];
            if (thread.state <= Thread::RUNNABLE) return &thread;
            if (thread.state == Thread::WAITING && thread.ready != nullptr && thread.ready(thread.operand)) return &thread;
        }
        return nullptr;
    }

    void enter(Thread& thread) {
        self_ = &thread;
        threadIdx = thread.index;
        progress_ = true;
    }

    void resume(Thread& thread) {
        if (thread.state == Thread::UNSTARTED) thread.fiber = take_fiber();
        enter(thread);
        Fiber::change(scheduler_, *thread.fiber);
        self_ = nullptr;
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    void wait(const char* name, Meet meet, unsigned mask, void* operand) {
        Thread& thread = *self_;
        thread.state = Thread::WAITING;
        thread.name = name;
        thread.meet = meet;
        thread.ready = nullptr;
        thread.mask = mask;
        thread.operand = operand;
    }

    void yield() { Fiber::change(*self_->fiber, scheduler_); }

    static void fiber_main() {
        Block& block = *current;
        Fiber::entered(block.scheduler_);
        Fiber& fiber = *block.self_->fiber;
        for (;;) {
            Thread* thread = block.self_;
            thread->state = Thread::RUNNABLE;
            try {
                block.kernel_();
            } catch (...) {
                block.error_ = std::current_exception();
            }
            thread->state = Thread::EXITED;
            ++block.exited_;
            thread = block.error_ ? nullptr : block.next();
            if (thread != nullptr && thread->state == Thread::UNSTARTED) {
                thread->fiber = &fiber;
                block.enter(*thread);
                continue;
            }
            if (thread != nullptr) --block.cursor_;  // it has a fiber already: the scheduler's turn
            block.idle_.push_back(&fiber);
            Fiber::change(fiber, block.scheduler_);
        }
    }

    Fiber* take_fiber() {
        if (!idle_.empty()) {
            Fiber* fiber = idle_.back();
            idle_.pop_back();
            return fiber;
        }
        if (begun_ == fibers_.size()) fibers_.emplace_back().allocate(unsigned(begun_));
        fibers_[begun_].restart(fiber_main);
        return &fibers_[begun_++];
    }

    // "3 threads wait at __syncthreads: (0, 0, 0), (1, 0, 0), (2, 0, 0); 1 thread exited: (3, 0, 0)"
    std::string census() const {
        std::map<std::string, std::vector<uint3>> groups;
        for (const Thread& thread : threads_) {
            std::string what = thread.state == Thread::EXITED ? "exited" : "can still run";
            if (thread.state == Thread::WAITING) {
                char mask[32] = "";
                if (thread.mask != 0) snprintf(mask, sizeof mask, " with mask 0x%08x", thread.mask);
                what = std::string("wait at ") + thread.name + mask;
            }
            groups[what].push_back(thread.index);
        }
        std::string all;
        for (const auto& [what, members] : groups) {
            all += (all.empty() ? "" : "; ") + std::to_string(members.size()) +
                   (members.size() == 1 ? " thread " : " threads ") + what + ":";
            for (size_t i = 0; i < members.size() && i < 4; ++i) all += " " + text(members[i]);
            if (members.size() > 4) all += " ...";
        }
        return all;
    }

    const std::function<void()>& kernel_;
    std::vector<Thread> threads_;
    std::vector<size_t> order_;
    const uint64_t* seed_;  // null: in thread order
    Chance random_;
    // Stacks outlive a launch. A stack is two mappings, of which a process may have 65530: so all its modules share one pool,
    // by symbols of default visibility, which are unique in a process.
    [[gnu::visibility("default")]] static inline std::mutex pool_mutex_;
    [[gnu::visibility("default")]] static inline std::vector<std::deque<Fiber>> pool_;
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

inline std::string place() {
    if (Block::current == nullptr || !Block::current->in_thread()) return "";
    return "block " + text(blockIdx) + ", thread " + text(threadIdx) + ": ";
}

}  // namespace simt
