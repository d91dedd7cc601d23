// Every fault that the emulation finds ends here.
#pragma once
#include <string>

namespace simt {

std::string place();  // "block (1, 0, 0), thread (3, 0, 0): " inside a kernel thread, else empty

[[noreturn]] void fail(const std::string& what);
[[noreturn]] void fail(const char* what);  // a kernel that may fail need not make a string

}  // namespace simt
