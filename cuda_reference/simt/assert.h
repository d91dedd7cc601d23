// A failing device assert is an error of the launch, and does not end the process. Like the system's header, which it replaces,
// it has no include guard: every inclusion defines `assert` again.
#include_next <assert.h>
#ifndef NDEBUG
#include "fail.h"
#undef assert
#define SIMT_TEXT_(x) #x
#define SIMT_TEXT(x) SIMT_TEXT_(x)
#define assert(...)                 \
    (static_cast<bool>(__VA_ARGS__) \
         ? void(0)                  \
         : ::simt::fail("assertion failed: " #__VA_ARGS__ " at " __FILE__ ":" SIMT_TEXT(__LINE__)))
#endif
