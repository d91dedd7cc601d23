// A fiber: code with its own stack that runs until it switches back. It is started by setcontext, which costs two system calls,
// and switched by _setjmp / _longjmp, which cost none. A fiber stays on the OS thread that started it, because the compiler may
// keep the address of a thread_local across a switch.
#pragma once
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>

#include "fail.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

class Fiber {
public:
    Fiber() = default;  // the OS thread's own stack, which fibers switch back to
    Fiber(const Fiber&) = delete;

    static constexpr size_t STACK = 256 * 1024;  // only touched pages take memory

    // `colour` staggers the beginnings of stacks: hot frames at the same offset of every stack would share a few cache sets.
    void allocate(unsigned colour) {
        const size_t page = sysconf(_SC_PAGESIZE);
        mapped_ = STACK + page;
        void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0)  // the guard page: an overflow faults
            throw std::runtime_error(
                "cannot map a stack for a CUDA thread: use fewer OS threads (SIMT_THREADS) or smaller blocks");
        mapping_ = memory;
        bottom_ = static_cast<char*>(memory) + page;
        size_ = STACK - colour % 61 * 64;
    }

    ~Fiber() {
        forget_frames();
        if (mapping_ != nullptr) munmap(mapping_, mapped_);
    }

    // The next switch to it begins `entry` on an empty stack, and drops whatever was running there.
    void restart(void (*entry)()) {
        forget_frames();
        getcontext(&start_);
        start_.uc_stack.ss_sp = const_cast<void*>(bottom_);
        start_.uc_stack.ss_size = size_;
        start_.uc_link = nullptr;
        makecontext(&start_, entry, 0);
        started_ = false;
    }

    // The first statement of `entry`: `from` is the fiber that switched here.
    static void entered([[maybe_unused]] Fiber& from) {
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.size_);
#endif
    }

    [[gnu::noinline]] static void change(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
        if (_setjmp(from.registers_) == 0) {
            if (to.started_) _longjmp(to.registers_, 1);
            to.started_ = true;
            setcontext(&to.start_);
        }
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
    }

private:
    void forget_frames() {
#ifdef __SANITIZE_ADDRESS__
        if (mapping_ != nullptr) __asan_unpoison_memory_region(bottom_, size_);
#endif
    }

    jmp_buf registers_;
    ucontext_t start_;
    bool started_ = true;  // an OS thread's own stack always is
    void* mapping_ = nullptr;
    size_t mapped_ = 0;
    const void* bottom_ = nullptr;
    size_t size_ = 0;
    void* fake_stack_ = nullptr;
};

}  // namespace simt
