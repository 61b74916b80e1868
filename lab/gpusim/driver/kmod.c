/* The simulated nvidia.ko: only what modinfo and depmod read. No kernel would load it, and none is
 * asked to: modprobe runs /usr/lib/gpu-sim/load in its place. */
#define MODINFO(name, text)                                                     \
    static const char modinfo_##name[]                                         \
        __attribute__((used, section(".modinfo"), aligned(1))) = #name "=" text

MODINFO(version, SIM_DRIVER_VERSION);
MODINFO(license, SIM_LICENSE);
MODINFO(description, "SIMULATED by the gpuboot lab");
MODINFO(name, "nvidia");
MODINFO(depends, "");
