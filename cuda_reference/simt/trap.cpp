// A kernel's integer division by zero is an error of its launch, as a fault is on a GPU's side; the process lives on.
#include <signal.h>

#include "block.h"

namespace simt {

// The kernel's fiber is left where it is: its stack begins anew before it is used again.
struct DivisionTrap {
    static inline struct sigaction before;  // what other divisions do, those of other modules' kernels among them

    static void handle(int signal, siginfo_t* info, void* context) {
        if (Block::current != nullptr && Block::current->in_thread()) Block::current->abandon("an integer division by zero");
        if (before.sa_flags & SA_SIGINFO)
            before.sa_sigaction(signal, info, context);
        else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
            sigaction(signal, &before, nullptr);  // and the division is tried once more
        else
            before.sa_handler(signal);
    }

    DivisionTrap() {
        struct sigaction action {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler is never returned from
        sigaction(SIGFPE, &action, &before);
    }
};
static const DivisionTrap division_trap;

}  // namespace simt
