// The plan of a repeated call, and the call by it.
#pragma once
#include "key.h"
#include "launches.h"
#include "python.h"

#include <memory>
#include <unordered_map>
#include <vector>

struct Recipe;

struct Plan {
    at::Device device{at::kCPU};
    std::vector<Make> makes;
    std::vector<Launch> launches;
    size_t result;
    THPObjectPtr backward, saves, switches;  // null for calls whose gradients are left to Python
    std::unordered_map<uint64_t, std::vector<bool>> saved;  // by the bits of which tensors need a gradient: which are kept
    std::unordered_map<Key, std::shared_ptr<const Recipe>, Hash> recipes;  // of its gradients
};

// The result of the call, of operands at these addresses; undefined, with nothing launched, if torch gave memory of another
// alignment than the plan has.
at::Tensor repeat(Plan& plan, driver::Addresses addresses) {
    const c10::OptionalDeviceGuard on_device(plan.device.is_cpu() ? std::nullopt : std::optional(plan.device));
    const size_t given = addresses.size();
    std::vector<at::Tensor> tensors;
    tensors.reserve(plan.makes.size());
    for (Make& make : plan.makes) {
        tensors.push_back(made(make));
        addresses.push_back(address_of(tensors.back()));
        if (addresses.back() % ALIGNMENT) return {};
    }
    void* stream = nullptr;
    if (!plan.device.is_cpu()) stream = c10::impl::VirtualGuardImpl(plan.device.type()).getStream(plan.device).native_handle();
    for (Launch& launch : plan.launches) run(launch, addresses, stream);
    return tensors[plan.result - given];
}
