// Stands in for libFuzzer where the compiler has none: gives the target every file of its corpus
// and then mutations of them, the same ones in every run. A failure is an abort, as under
// libFuzzer. Mutation i of seed s is mutation 0 of seed s + i, so a failing one is found by
// halving. Usage: <target>_replay CORPUS_FOLDER MUTATIONS [SEED]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;
using warpraid::SeededRandom;

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kInputBytesMax = std::size_t{1} << 17;

std::vector<Input> read_corpus(const std::string& folder) {
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Input> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

/// A place in the input; nearer the start more often, where headers are.
std::size_t pick_place(const Input& input, SeededRandom& random) {
    const std::size_t size = input.size();
    return random.below(2) == 0 ? random.below(size)
                                : random.below(std::min<std::size_t>(size, 64));
}

void change_bytes(Input& input, SeededRandom& random) {
    constexpr std::uint8_t kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    const std::size_t place = pick_place(input, random);
    switch (random.below(3)) {
        case 0:
            input[place] = static_cast<std::uint8_t>(input[place] ^ 1u << random.below(8));
            break;
        case 1:
            input[place] = static_cast<std::uint8_t>(random.next());
            break;
        default: {
            const std::size_t end =
                std::min(input.size(), place + (std::size_t{1} << random.below(4)));
            std::fill(input.begin() + static_cast<std::ptrdiff_t>(place),
                      input.begin() + static_cast<std::ptrdiff_t>(end), kTelling[random.below(5)]);
        }
    }
}

void mutate(Input& input, const std::vector<Input>& corpus, SeededRandom& random) {
    for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
        if (input.empty()) input.push_back(static_cast<std::uint8_t>(random.next()));
        const auto place = static_cast<std::ptrdiff_t>(pick_place(input, random));
        switch (random.below(8)) {
            case 0:  // cut off
                input.resize(static_cast<std::size_t>(place));
                break;
            case 1: {  // the rest of another input
                const Input& other = corpus[random.below(corpus.size())];
                input.resize(static_cast<std::size_t>(place));
                if (static_cast<std::size_t>(place) < other.size()) {
                    input.insert(input.end(), other.begin() + place, other.end());
                }
                break;
            }
            case 2:  // insert
                input.insert(input.begin() + place, 1 + random.below(8),
                             static_cast<std::uint8_t>(random.next()));
                break;
            default:
                change_bytes(input, random);
        }
    }
    if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS [SEED]\n", arguments[0]);
        return 2;
    }
    std::vector<Input> corpus = read_corpus(arguments[1]);
    const std::uint64_t mutations = std::strtoull(arguments[2], nullptr, 10);
    const std::uint64_t seed = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : kSeed;
    std::printf("%zu inputs, %llu mutations, seed %llu\n", corpus.size(),
                static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
    corpus.emplace_back();
    for (std::uint64_t i = 0; i < mutations; ++i) {
        SeededRandom random(seed + i);
        Input input = corpus[random.below(corpus.size())];
        mutate(input, corpus, random);
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("done\n");
    return 0;
}
