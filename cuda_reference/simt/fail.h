// Every fault that the emulation finds ends here.
#pragma once
#include <stdexcept>
#include <string>

namespace simt {

std::string place();  // "block (1, 0, 0), thread (3, 0, 0): " inside a kernel thread, else empty

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(place() + what); }

}  // namespace simt
