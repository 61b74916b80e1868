/* Simulated NVML: clocks, and what holds them down for how long. */
#include "state.h"

#include <stddef.h>

#define MAX_SM_MEGAHERTZ 1980
#define MAX_MEMORY_MEGAHERTZ 2619
#define IDLE_MEGAHERTZ 345
#define SLOWED_MEGAHERTZ 1000 /* the hardware's slowdown halves the clock */
#define CAPPED_MEGAHERTZ 1755
#define HARDWARE_SLOWDOWN                                                              \
    (NVML_CLOCKS_HW_SLOWDOWN | NVML_CLOCKS_HW_THERMAL_SLOWDOWN |                       \
     NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN)

uint64_t sim_clock_reasons(int gpu) {
    static const struct {
        const char *key;
        uint64_t reasons;
    } held_down[] = {
        {"power_cap", NVML_CLOCKS_SW_POWER_CAP},
        {"sync_boost", NVML_CLOCKS_SYNC_BOOST},
        {"sw_thermal", NVML_CLOCKS_SW_THERMAL_SLOWDOWN},
        {"hw_thermal", NVML_CLOCKS_HW_SLOWDOWN | NVML_CLOCKS_HW_THERMAL_SLOWDOWN},
        {"power_brake", NVML_CLOCKS_HW_SLOWDOWN | NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN},
    };
    uint64_t mask = 0;
    for (size_t i = 0; i < sizeof held_down / sizeof *held_down; i++)
        if (sim_number(gpu, held_down[i].key, 0)) mask |= held_down[i].reasons;
    if (sim_temperature(gpu) >= SIM_SLOWDOWN_CELSIUS)
        mask |= NVML_CLOCKS_HW_SLOWDOWN | NVML_CLOCKS_HW_THERMAL_SLOWDOWN;
    if (!mask && !sim_gpu_load((unsigned)gpu)) mask = NVML_CLOCKS_GPU_IDLE;
    return sim_number(gpu, "clock_events", mask);
}

static double held_down(int gpu, double from, double until, const void *reason) {
    return sim_clock_reasons(gpu) & *(const uint64_t *)reason ? (until - from) * 1e9 : 0;
}

uint64_t sim_held_down_ns(int gpu, uint64_t reasons) {
    return (uint64_t)sim_sum(gpu, sim_loaded_at(), held_down, &reasons);
}

NVML_API nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned clock, unsigned *megahertz) {
    REQUIRE_DEVICE(device);
    *megahertz = clock == NVML_CLOCK_MEM ? MAX_MEMORY_MEGAHERTZ : MAX_SM_MEGAHERTZ;
    return NVML_SUCCESS;
}

static unsigned sm_clock(int gpu) {
    uint64_t reasons = sim_clock_reasons(gpu);
    unsigned megahertz = MAX_SM_MEGAHERTZ;
    if (reasons & (NVML_CLOCKS_SW_POWER_CAP | NVML_CLOCKS_SW_THERMAL_SLOWDOWN))
        megahertz = CAPPED_MEGAHERTZ;
    if (!sim_gpu_load((unsigned)gpu)) megahertz = IDLE_MEGAHERTZ;
    if (reasons & HARDWARE_SLOWDOWN) megahertz = SLOWED_MEGAHERTZ;
    return (unsigned)sim_number(gpu, "sm_clock", megahertz);
}

NVML_API nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned clock, unsigned *megahertz) {
    nvmlReturn_t result = nvmlDeviceGetMaxClockInfo(device, clock, megahertz);
    if (result != NVML_SUCCESS || clock == NVML_CLOCK_MEM) return result;
    *megahertz = sm_clock((int)device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned *state) {
    REQUIRE_DEVICE(device);
    *state = 0;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    REQUIRE_DEVICE(device);
    *reasons = sim_clock_reasons((int)device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                   unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

/* In nanoseconds since the driver was loaded. Nothing but power, heat and sync boost is simulated. */
NVML_API nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned policy,
                                      nvmlViolationTime_t *violation) {
    static const uint64_t reasons[] = {
        NVML_CLOCKS_SW_POWER_CAP | NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN,
        NVML_CLOCKS_SW_THERMAL_SLOWDOWN | NVML_CLOCKS_HW_THERMAL_SLOWDOWN,
        NVML_CLOCKS_SYNC_BOOST,
        0, /* board limit */
        0, /* low utilization */
        0, /* reliability */
    };
    REQUIRE_DEVICE(device);
    if (policy >= sizeof reasons / sizeof *reasons) return NVML_ERROR_NOT_SUPPORTED;
    violation->referenceTime = (unsigned long long)(sim_now() * 1e6);
    violation->violationTime = sim_held_down_ns((int)device->gpu, reasons[policy]);
    return NVML_SUCCESS;
}
