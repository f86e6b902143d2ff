// `warpraidd demo`: the main job in a minute, as its user would do it. Starts a daemon of its own
// on sparse files in a private directory, and drives it by the real command line tool and fio's NBD
// client: write, lose two drives in mid-write, read back, rebuild on spares, read back, verify
// parity. Needs no root, no drive and no kernel module.
#pragma once

#include <string>

namespace warpraid::demo {

struct Options {
    std::string directory = "demo";
    std::string program_directory;  // where warpraid and warpraidd lie
};

/// The process's exit status: 0 when every step held.
int run(const Options& options);

}  // namespace warpraid::demo
