// The scheduling of a block's threads (block.h).
#include "cuda_runtime.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace simt {

// Stacks are kept after a launch. A stack is two mappings, of which a process may have 65530, so all its modules share one
// pool, by symbols of default visibility, which are unique in a process.
struct Pool {
    [[gnu::visibility("default")]] static inline std::mutex mutex;
    [[gnu::visibility("default")]] static inline std::vector<std::deque<Fiber>> fibers;
};

std::string text(uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

std::string place() {
    if (Block::current == nullptr || !Block::current->in_thread()) return "";
    return "block " + text(blockIdx) + ", thread " + text(threadIdx) + ": ";
}

void fail(const std::string& what) { throw std::runtime_error(place() + what); }
void fail(const char* what) { fail(std::string(what)); }

Block::Block(const Body& kernel, dim3 shape, const uint64_t* seed, Cluster& cluster, int cluster_rank)
    : kernel_(kernel),
      cluster_(cluster),
      cluster_rank_(cluster_rank),
      threads_(shape.x * shape.y * shape.z),
      seed_(seed) {
    uint3 index{0, 0, 0};
    for (Thread& thread : threads_) {
        thread.index = index;
        order_.push_back(order_.size());
        if (++index.x == shape.x) index.x = 0, ++index.y;
        if (index.y == shape.y) index.y = 0, ++index.z;
    }
    std::lock_guard<std::mutex> lock(Pool::mutex);
    if (Pool::fibers.empty()) return;
    fibers_ = std::move(Pool::fibers.back());
    Pool::fibers.pop_back();
}

Block::~Block() {
    current = nullptr;
    std::lock_guard<std::mutex> lock(Pool::mutex);
    Pool::fibers.push_back(std::move(fibers_));
}

int Block::warp_lanes() const { return std::min<int>(warpSize, int(threads_.size()) - rank() / warpSize * warpSize); }

void Block::begin(uint64_t number) {
    static thread_local uint64_t begun = 0;
    serial_ = ++begun;
    index_ = {unsigned(number % gridDim.x), unsigned(number / gridDim.x % gridDim.y), unsigned(number / gridDim.x / gridDim.y)};
    kept_.assign(cluster_.shared_bytes, 0xFF);
    for (Thread& thread : threads_) {
        thread.state = Thread::UNSTARTED;
        thread.fenced = thread.proxy_unfenced = false;
    }
    exited_ = at_barrier_ = proxy_unfenced_ = landing = 0;
    if (seed_ != nullptr) random_ = {*seed_ * 0x9E3779B97F4A7C15u + number};
}

bool Block::round() {
    if (cluster_.in_turn != this) {
        Block& before = *cluster_.in_turn;
        std::memcpy(before.kept_.data(), dynamic_shared_memory, before.kept_.size());
        std::memcpy(dynamic_shared_memory, kept_.data(), kept_.size());
        cluster_.in_turn = this;
    }
    current = this;
    blockIdx = index_;
    begin_round();
    while (Thread* thread = next()) resume(*thread);
    return progress_;
}

Cluster::Cluster(const Body& kernel, dim3 shape, int size, size_t shared_bytes, const uint64_t* seed)
    : shared_bytes(size > 1 ? shared_bytes : 0) {
    for (int rank = 0; rank < size; ++rank) blocks.emplace_back(kernel, shape, seed, *this, rank);
}

void Cluster::run(uint64_t first) {
    for (Block& block : blocks) block.begin(first + block.cluster_rank());
    in_turn = &blocks[0];
    arrived = phase = 0;
    bool progress;
    do {
        progress = false;
        for (Block& block : blocks)
            while (!block.ended() && block.round()) {  // as far as it gets without the others, or less far in a random order
                progress = true;
                if (blocks.size() > 1 && block.flip()) break;
            }
    } while (progress);
    std::string faults;
    for (const Block& block : blocks)
        if (const std::string fault = block.fault(); !fault.empty()) faults += (faults.empty() ? "" : "; ") + fault;
    if (!faults.empty()) throw std::runtime_error(faults);
}

Block& Block::peer(int rank) {
    if (rank < 0 || rank >= int(cluster_.blocks.size()))
        fail("block " + std::to_string(rank) + " of a cluster of " + std::to_string(cluster_.blocks.size()));
    return cluster_.blocks[rank];
}

unsigned char* Block::there(const void* pointer) {
    const size_t offset = static_cast<const unsigned char*>(pointer) - dynamic_shared_memory;
    return (cluster_.in_turn == this ? dynamic_shared_memory : kept_.data()) + offset;
}

void Block::wait_block(const char* name, Exchange exchange, void* operand) {
    if (at_barrier_ > 0 && barrier_ != exchange)
        fail(std::string("arrives at ") + name + " while other threads of its block wait: " + states());
    barrier_ = exchange;
    wait(name, exchange, 0, operand);
    if (++at_barrier_ < threads_.size()) return yield();
    at_barrier_ = 0;
    exchange(threads_.data(), int(threads_.size()), 0);
    for (Thread& thread : threads_) {
        thread.state = Thread::RUNNABLE;
        thread.fenced = false;
    }
}

void Block::wait_warp(const char* name, Exchange exchange, unsigned mask, void* operand) {
    const int lane = rank() % warpSize, lanes = warp_lanes();
    if (!(mask >> lane & 1)) fail(std::string(name) + " with a mask that does not name the calling lane");
    if (lanes < warpSize) mask &= (1u << lanes) - 1;  // lanes that the block does not have
    wait(name, exchange, mask, operand);
    wait_for(&threads_[rank() - lane], lanes, exchange, mask);
}

void Block::wait_warpgroup(const char* name, Exchange exchange, void* operand) {
    constexpr int SIZE = 4 * warpSize;
    const int first = rank() / SIZE * SIZE;
    if (first + SIZE > int(threads_.size()))
        fail(std::string(name) + " needs 4 warps; the block's last warpgroup has fewer");
    wait(name, exchange, 0, operand);
    wait_for(&threads_[first], SIZE, exchange, 0);
}

void Block::wait_cluster(const char* name) {
    struct Wait {
        const Cluster& cluster;
        const size_t phase;
    } wait{cluster_, cluster_.phase};
    if (++cluster_.arrived == cluster_.blocks.size() * threads_.size()) {
        cluster_.arrived = 0;
        ++cluster_.phase;
    }
    const auto over = [](void* operand) {
        const auto& wait = *static_cast<const Wait*>(operand);
        return wait.cluster.phase != wait.phase;
    };
    wait_until(name, over, &wait);
}

void Block::wait_until(const char* name, bool (*ready)(void* operand), void* operand) {
    if (ready(operand)) return;
    wait(name, nullptr, 0, operand);
    self_->ready = ready;
    yield();
    self_->state = Thread::RUNNABLE;
}

void Block::abandon(const std::string& why) {
    error_ = std::make_exception_ptr(std::runtime_error(place() + why));
    self_->state = Thread::EXITED;
    ++exited_;
    Fiber::change(*self_->fiber, scheduler_);
    __builtin_unreachable();
}

void Block::wait_for(Thread* group, int count, Exchange exchange, unsigned mask) {
    const auto named = [mask](int i) { return mask == 0 || (mask >> i & 1); };
    for (int i = count - 1; i >= 0; --i)  // downwards: threads mostly arrive upwards, so an absent one is found at once
        if (named(i))
            if (group[i].state != Thread::WAITING || group[i].exchange != exchange || group[i].mask != mask) return yield();
    exchange(group, count, mask);
    for (int i = 0; i < count; ++i)
        if (named(i)) group[i].state = Thread::RUNNABLE;
}

void Block::begin_round() {
    if (seed_ != nullptr) random_.shuffle(order_);
    cursor_ = 0;
    progress_ = false;
}

Thread* Block::next() {
    while (cursor_ < order_.size()) {
        Thread& thread = threads_[order_[cursor_++]];
        if (thread.state <= Thread::RUNNABLE) return &thread;
        if (thread.state == Thread::WAITING && thread.ready != nullptr && thread.ready(thread.operand)) return &thread;
    }
    return nullptr;
}

void Block::enter(Thread& thread) {
    self_ = &thread;
    threadIdx = thread.index;
    progress_ = true;
}

void Block::resume(Thread& thread) {
    if (thread.state == Thread::UNSTARTED) thread.fiber = take_fiber();
    enter(thread);
    Fiber::change(scheduler_, *thread.fiber);
    self_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Block::wait(const char* name, Exchange exchange, unsigned mask, void* operand) {
    Thread& thread = *self_;
    thread.state = Thread::WAITING;
    thread.name = name;
    thread.exchange = exchange;
    thread.ready = nullptr;
    thread.mask = mask;
    thread.operand = operand;
}

void Block::yield() { Fiber::change(*self_->fiber, scheduler_); }

void Block::fiber_main() {
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
        if (thread != nullptr) --block.cursor_;  // it has a fiber already: the scheduler switches to it
        block.idle_.push_back(&fiber);
        Fiber::change(fiber, block.scheduler_);
    }
}

Fiber* Block::take_fiber() {
    if (!idle_.empty()) {
        Fiber* fiber = idle_.back();
        idle_.pop_back();
        return fiber;
    }
    if (begun_ == fibers_.size()) fibers_.emplace_back().allocate(unsigned(begun_));
    fibers_[begun_].restart(fiber_main);
    return &fibers_[begun_++];
}

std::string Block::fault() const {
    if (!ended()) return "block " + text(index_) + " diverged: " + states();
    if (landing > 0) return "block " + text(index_) + " ended before a copy that another of its cluster requested had landed";
    return "";
}

std::string Block::states() const {
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

}  // namespace simt
