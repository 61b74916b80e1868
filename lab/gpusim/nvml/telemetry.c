/* Simulated NVML: what changes while a GPU runs. Every value follows the GPU's load, and a key of
 * the configuration can set it. */
#include "../common/simwork.h"
#include "mig.h"

#include <stddef.h>

#define MIB (1ULL << 20)
#define RESERVED_MIB 550
#define IDLE_MILLIWATT 72000
#define SHUTDOWN_CELSIUS 92
#define MEMORY_MAX_CELSIUS 95

static uint64_t number(nvmlDevice_t device, const char *key, uint64_t fallback) {
    return sim_number((int)device->gpu, key, fallback);
}

/* An entry point that answers one number from the configuration. */
#define DEVICE_NUMBER(function, type, key, fallback)        \
    NVML_API function(nvmlDevice_t device, type *value) {   \
        REQUIRE_DEVICE(device);                             \
        *value = (type)number(device, key, fallback);       \
        return NVML_SUCCESS;                                \
    }

DEVICE_NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence", 0)
DEVICE_NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode", 0)
DEVICE_NUMBER(nvmlDeviceGetDisplayActive, unsigned, "display", 0)
DEVICE_NUMBER(nvmlDeviceGetDisplayMode, unsigned, "display", 0)
DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_gen", 5)
DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_gen_max", 5)
DEVICE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width", 16)
DEVICE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_width_max", 16)

NVML_API nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned mode) {
    REQUIRE_DEVICE(device);
    if (mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
    return sim_append((int)device->gpu, "persistence", mode) == 0 ? NVML_SUCCESS
                                                                   : NVML_ERROR_NO_PERMISSION;
}

/* A MIG device's memory, which is held by nobody. */
static void mig_memory(const struct sim_compute_instance *mig, nvmlMemory_v2_t *memory) {
    const struct sim_profile *profile = sim_instance(mig->gpu, mig->instance, NULL);
    memory->total = memory->free = sim_profile_mib(mig->gpu, profile) * MIB;
    memory->reserved = memory->used = 0;
}

NVML_API nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    struct sim_compute_instance mig;
    if (sim_mig_enter(device, &mig) == NVML_SUCCESS) {
        mig_memory(&mig, memory);
        return NVML_SUCCESS;
    }
    REQUIRE_DEVICE(device);
    if (memory->version != (sizeof *memory | 2u << 24)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = number(device, "memory_mib", 81559) * MIB;
    memory->reserved = RESERVED_MIB * MIB;
    /* A GPU that is given a load holds data: half of its memory. */
    int busy = number(device, "util", 0) > 0 || number(device, "util_max", 0) > 0;
    uint64_t room = memory->total - memory->reserved, held = busy ? memory->total / MIB / 2 : 0;
    held += sim_work((int)device->gpu, SIM_ALLOCATED);
    memory->used = number(device, "memory_used_mib", held) * MIB;
    if (memory->used > room) memory->used = room;
    memory->free = room - memory->used;
    return NVML_SUCCESS;
}

/* The first version counts reserved memory as used. */
NVML_API nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlMemory_v2_t all = {.version = sizeof all | 2u << 24};
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo_v2(device, &all);
    if (result != NVML_SUCCESS) return result;
    *memory = (nvmlMemory_t){all.total, all.free, all.used + all.reserved};
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1) {
    REQUIRE_DEVICE(device);
    *bar1 = (nvmlBAR1Memory_t){131072 * MIB, 131071 * MIB, MIB};
    return NVML_SUCCESS;
}

unsigned sim_temperature(int gpu) {
    return (unsigned)sim_number(gpu, "temperature", 34 + sim_gpu_load((unsigned)gpu) * 2 / 5);
}

NVML_API nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor UNUSED, unsigned *celsius) {
    REQUIRE_DEVICE(device);
    *celsius = sim_temperature((int)device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int which, unsigned *celsius) {
    REQUIRE_DEVICE(device);
    if (which > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
    *celsius = SIM_SLOWDOWN_CELSIUS;
    if (which == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN) *celsius = SHUTDOWN_CELSIUS;
    if (which == NVML_TEMPERATURE_THRESHOLD_MEM_MAX) *celsius = MEMORY_MAX_CELSIUS;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *margin) {
    REQUIRE_DEVICE(device);
    margin->marginTemperature = SIM_SLOWDOWN_CELSIUS - (int)sim_temperature((int)device->gpu);
    return NVML_SUCCESS;
}

#define DEFAULT_POWER_LIMIT_W 700

static unsigned power_limit(int gpu) {
    return 1000 * (unsigned)sim_number(gpu, "power_limit_w", DEFAULT_POWER_LIMIT_W);
}

static double power_at(int gpu, double load) {
    double above_idle = power_limit(gpu) - (double)IDLE_MILLIWATT;
    return (double)sim_number(gpu, "power_mw", (uint64_t)(IDLE_MILLIWATT + above_idle * load / 100));
}

NVML_API nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatt) {
    REQUIRE_DEVICE(device);
    *milliwatt = (unsigned)power_at((int)device->gpu, sim_gpu_load(device->gpu));
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatt) {
    REQUIRE_DEVICE(device);
    *milliwatt = power_limit((int)device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatt) {
    return nvmlDeviceGetPowerManagementLimit(device, milliwatt);
}

NVML_API nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned *milliwatt) {
    REQUIRE_DEVICE(device);
    *milliwatt = 1000 * DEFAULT_POWER_LIMIT_W;
    return NVML_SUCCESS;
}

static double energy(int gpu, double from, double until, const void *context UNUSED) {
    return (until - from) * power_at(gpu, sim_gpu_mean_load(gpu, from, until));
}

/* Since the driver was loaded, which it is for a GPU alone when that is reset. */
NVML_API nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoule) {
    REQUIRE_DEVICE(device);
    int gpu = (int)device->gpu;
    double loaded = sim_loaded_at(), reset = sim_set_at(gpu, "was_reset");
    *millijoule = (unsigned long long)sim_sum(gpu, reset > loaded ? reset : loaded, energy, NULL);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    REQUIRE_DEVICE(device);
    rates->gpu = sim_gpu_load(device->gpu);
    unsigned copying = sim_work((int)device->gpu, SIM_COPY);
    rates->memory = sim_gpu_set_load(device->gpu) / 2;
    if (copying > rates->memory) rates->memory = copying;
    return NVML_SUCCESS;
}

static nvmlReturn_t codec_load(nvmlDevice_t device, unsigned *percent, unsigned *period_us) {
    REQUIRE_DEVICE(device);
    *percent = 0;
    *period_us = 167000;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *percent, unsigned *us) {
    return codec_load(device, percent, us);
}

NVML_API nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *percent, unsigned *us) {
    return codec_load(device, percent, us);
}

NVML_API nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned *replays) {
    REQUIRE_DEVICE(device);
    *replays = (unsigned)sim_count((int)device->gpu, "pcie_replay");
    return NVML_SUCCESS;
}

#define LINK_KIB 48828125 /* a second, in each direction: what the simulated libcuda moves */

/* In KiB/s; counter: 0 to the host, 1 from it. Both follow load and copies, where they are not set. */
NVML_API nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter, unsigned *rate) {
    REQUIRE_DEVICE(device);
    const char *key = counter ? "pcie_rx_mib" : "pcie_tx_mib";
    uint64_t mib = sim_number((int)device->gpu, key, UINT64_MAX);
    unsigned copies = sim_work((int)device->gpu, counter ? SIM_TO_DEVICE : SIM_TO_HOST);
    unsigned now = sim_gpu_set_load(device->gpu) * 1000 + copies * (LINK_KIB / 100);
    *rate = mib == UINT64_MAX ? now : (unsigned)(mib * 1024);
    return NVML_SUCCESS;
}
