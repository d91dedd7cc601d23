// A kernel's integer division by zero is an error of its launch, like a fault on a GPU, and does not end the process.
#include <signal.h>

#include "block.h"

namespace simt {

// The kernel's fiber is abandoned: its stack is reset before its next use.
struct DivisionTrap {
    static inline struct sigaction before;  // the handler for other divisions, such as those of other modules' kernels

    static void handle(int signal, siginfo_t* info, void* context) {
        if (Block::current != nullptr && Block::current->in_thread()) Block::current->abandon("an integer division by zero");
        if (before.sa_flags & SA_SIGINFO)
            before.sa_sigaction(signal, info, context);
        else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
            sigaction(signal, &before, nullptr);  // the division is then repeated
        else
            before.sa_handler(signal);
    }

    DivisionTrap() {
        struct sigaction action {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler never returns
        sigaction(SIGFPE, &action, &before);
    }
};
static const DivisionTrap division_trap;

}  // namespace simt
