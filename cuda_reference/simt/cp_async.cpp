// The functions of common/cp_async.cuh that are no templates.
#include "../common/cp_async.cuh"

#include <deque>
#include <unordered_map>
#include <vector>

namespace simt {

// A thread's uncommitted copies, and its groups, oldest first.
struct AsyncCopies {
    std::vector<AsyncCopy> open;
    std::deque<std::vector<AsyncCopy>> groups;

    static AsyncCopies& mine() {
        static thread_local std::unordered_map<int, AsyncCopies> of_threads;  // those that have asked, at a fixed place
        return of_threads[Block::current->slot()];
    }
};

void issue(const AsyncCopy& copy) { AsyncCopies::mine().open.push_back(copy); }

void wait_copies(size_t pending) {
    auto& groups = AsyncCopies::mine().groups;
    for (; groups.size() > pending; groups.pop_front())
        for (const AsyncCopy& copy : groups.front()) {
            Block::current->wrote_to_shared();
            copy.land();
        }
}

}  // namespace simt

void cp_async_commit() {
    auto& copies = simt::AsyncCopies::mine();
    copies.groups.push_back(std::move(copies.open));
    copies.open.clear();
}
