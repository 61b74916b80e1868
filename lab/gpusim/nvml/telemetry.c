/* Simulated NVML: what changes while a GPU runs. Every value follows the GPU's load, and a key of
 * the configuration can set it. */
#include "state.h"

#include <stddef.h>
#include <time.h>

#define MIB (1ULL << 20)
#define RESERVED_MIB 550
#define IDLE_MILLIWATT 72000
#define SLOWDOWN_CELSIUS 87

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
DEVICE_NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie_replay", 0)

NVML_API nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned mode) {
    REQUIRE_DEVICE(device);
    if (mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
    return sim_append((int)device->gpu, "persistence", mode) == 0 ? NVML_SUCCESS
                                                                   : NVML_ERROR_NO_PERMISSION;
}

NVML_API nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    REQUIRE_DEVICE(device);
    if (memory->version != (sizeof *memory | 2u << 24)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = number(device, "memory_mib", 81559) * MIB;
    memory->reserved = RESERVED_MIB * MIB;
    memory->used = number(device, "memory_used_mib", 0) * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
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

static unsigned temperature(nvmlDevice_t device) {
    return (unsigned)number(device, "temperature", 34 + sim_gpu_load(device->gpu) * 2 / 5);
}

NVML_API nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor UNUSED, unsigned *celsius) {
    REQUIRE_DEVICE(device);
    *celsius = temperature(device);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int which, unsigned *celsius) {
    REQUIRE_DEVICE(device);
    if (which > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
    *celsius = which == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? 92 : SLOWDOWN_CELSIUS;
    return NVML_SUCCESS;
}

static unsigned power_limit(nvmlDevice_t device) {
    return 1000 * (unsigned)number(device, "power_limit_w", 700);
}

static unsigned power(nvmlDevice_t device) {
    unsigned above_idle = power_limit(device) - IDLE_MILLIWATT;
    unsigned drawn = IDLE_MILLIWATT + above_idle / 100 * sim_gpu_load(device->gpu);
    return (unsigned)number(device, "power_mw", drawn);
}

NVML_API nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatt) {
    REQUIRE_DEVICE(device);
    *milliwatt = power(device);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatt) {
    REQUIRE_DEVICE(device);
    *milliwatt = power_limit(device);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatt) {
    return nvmlDeviceGetPowerManagementLimit(device, milliwatt);
}

NVML_API nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned *milliwatt) {
    return nvmlDeviceGetPowerManagementLimit(device, milliwatt);
}

/* Counts from loading the driver, at the idle power whatever the load: it must never fall. */
NVML_API nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoule) {
    REQUIRE_DEVICE(device);
    uint64_t now = (uint64_t)time(NULL), since = number(device, "loaded_at", now);
    *millijoule = (now - since) * IDLE_MILLIWATT;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    REQUIRE_DEVICE(device);
    rates->gpu = sim_gpu_load(device->gpu);
    rates->memory = rates->gpu / 2;
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

NVML_API nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned clock, unsigned *megahertz) {
    REQUIRE_DEVICE(device);
    *megahertz = clock == NVML_CLOCK_MEM ? 2619 : 1980;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned clock, unsigned *megahertz) {
    nvmlReturn_t result = nvmlDeviceGetMaxClockInfo(device, clock, megahertz);
    if (result != NVML_SUCCESS || clock == NVML_CLOCK_MEM) return result;
    if (sim_gpu_load(device->gpu) == 0) *megahertz = 345;
    if (temperature(device) >= SLOWDOWN_CELSIUS) *megahertz = 1000;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned *state) {
    REQUIRE_DEVICE(device);
    *state = 0;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    REQUIRE_DEVICE(device);
    uint64_t mask = sim_gpu_load(device->gpu) ? 0 : NVML_CLOCKS_GPU_IDLE;
    if (temperature(device) >= SLOWDOWN_CELSIUS)
        mask = NVML_CLOCKS_HW_SLOWDOWN | NVML_CLOCKS_HW_THERMAL_SLOWDOWN;
    *reasons = number(device, "clock_events", mask);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                   unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

NVML_API nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned policy UNUSED,
                                      nvmlViolationTime_t *violation) {
    REQUIRE_DEVICE(device);
    violation->referenceTime = (unsigned long long)time(NULL) * 1000000;
    violation->violationTime = number(device, "violation_ns", 0);
    return NVML_SUCCESS;
}

/* In KiB/s; both directions are alike. */
NVML_API nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter UNUSED, unsigned *rate) {
    REQUIRE_DEVICE(device);
    *rate = sim_gpu_load(device->gpu) * 1000;
    return NVML_SUCCESS;
}
