// What common/launch.cuh and encode.cuh tell CUDA, for test_host_code.py.

#include "common/encode.cuh"
#include "common/error.cuh"

void kernel(float, long) {}

template <class Call> void tried(const Call& call) {
    try {
        call();
    } catch (const std::exception& error) {
        std::printf("[\"error\", \"%s\"]\n", error.what());
    }
}

int main() {
    const auto launched = [](size_t bytes, bool overlaps) {
        launch(&kernel, {1, 2, 3}, {4, 5, 6}, bytes, overlaps, reinterpret_cast<void*>(77), 0.5, 8);
    };
    for (size_t bytes : {0, 47 * 1024, 47 * 1024 + 1, 232448, 232449}) tried([&] { launched(bytes, bytes == 0); });
    for (long size : {1, 2, 4}) tried([&] { encode(TiledTensor{4096, size, 0, {2, 3, 5}, {960, 320}, {64, 128 / size}}); });
    tried([] { encode(TiledTensor{4096, 4, 1, {2, 3, 5}, {960, 36}, {64, 32}}); });
    for (int i : {0, 1, 2}) tried([&] { encode(TiledTensor{1, 2, 0, {i != 0, i != 1, i != 2}, {8, 8}, {1, 8}}); });
    const auto images = [](int64_t images) {
        const int64_t bit = encode(PixelTensor{4096, 2, 0, {images, 5, 7, 24}, {840, 168, 24}, {-1, -2}, {1, 2}, {3, 4}, {64, 32}})
                                .encoded[1] >> 21 & 1;
        std::printf("[\"bit\", %d]\n", int(bit));
    };
    for (int64_t count : {2, 100, 0}) tried([&] { images(count); });
    tried([] { encode(PixelTensor{4096, 4, 1, {2, 5, 7, 24}, {840, 168, 24}, {-1, -2}, {1, 2}, {3, 4}, {64, 32}}); });
    tried([&] { encode(TiledTensor{4097, 2, 0, {1, 1, 1}, {8, 8}, {1, 8}}); });
}
