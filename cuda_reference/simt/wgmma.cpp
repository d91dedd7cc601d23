// The functions of wgmma.h that are no templates.
#include "../common/wgmma.cuh"

#include <deque>
#include <unordered_map>
#include <vector>

namespace simt {

// What one thread has issued.
struct Wgmmas {
    uint64_t block;
    bool fenced;
    std::vector<Wgmma> open;
    std::deque<std::vector<Wgmma>> groups;  // oldest first

    static Wgmmas& mine() {
        static thread_local std::unordered_map<int, Wgmmas> of_threads;  // those that have asked, at a fixed place
        Wgmmas& wgmmas = of_threads[Block::current->slot()];
        if (wgmmas.block != Block::current->serial()) wgmmas = {Block::current->serial(), false, {}, {}};
        return wgmmas;
    }
};

static void multiply_oldest_group(Thread* threads, int count, unsigned) {
    const auto of = [threads](int i) -> Wgmmas& { return *static_cast<Wgmmas*>(threads[i].operand); };
    const Wgmma* what[128];
    for (size_t i = 0; i < of(0).groups.front().size(); ++i) {
        const Wgmma& first = of(0).groups.front()[i];
        for (int thread = 0; thread < count; ++thread) {
            const auto& group = of(thread).groups.front();
            const bool same = group.size() == of(0).groups.front().size() && group[i].multiply == first.multiply &&
                              group[i].a == first.a && group[i].b == first.b;
            if (!same) fail("wgmma: the threads of a warpgroup do not issue the same");
            what[thread] = &group[i];
        }
        first.multiply(what);
    }
    for (int thread = 0; thread < count; ++thread) of(thread).groups.pop_front();
}

void issue(const Wgmma& what) {
    for (const uint64_t descriptor : {what.fragment ? what.b : what.a, what.b})
        if (descriptor >> 62 != 1 || descriptor >> 49 & 7) fail("wgmma: only the 128-byte swizzle is emulated");
    auto& mine = Wgmmas::mine();
    if (!mine.fenced) fail("wgmma without wgmma.fence since the warpgroup last waited");
    if (!Block::current->proxy_sees_all()) fail("wgmma of data from cp.async without fence.proxy.async since");
    mine.open.push_back(what);
}

void wait_wgmmas(size_t pending) {
    auto& mine = Wgmmas::mine();
    mine.fenced = false;
    while (mine.groups.size() > pending) Block::current->wait_warpgroup("wgmma.wait_group", multiply_oldest_group, &mine);
}

}  // namespace simt

void wgmma_fence() { simt::Wgmmas::mine().fenced = true; }

void wgmma_commit() {
    auto& mine = simt::Wgmmas::mine();
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}
