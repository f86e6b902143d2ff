#include "engine/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

namespace warpraid::bench {

namespace {

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return "unknown";
}

}  // namespace

Machine describe_machine() {
    Machine machine;
    machine.cpu = cpu_name();
    machine.cpus = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
    machine.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    utsname names{};
    if (::uname(&names) == 0) machine.kernel = std::string(names.sysname) + " " + names.release;
#ifdef __OPTIMIZE__
    machine.compiler = std::string("optimised, ") + __VERSION__;
#else
    machine.compiler = std::string("not optimised, ") + __VERSION__;
#endif
    return machine;
}

}  // namespace warpraid::bench
