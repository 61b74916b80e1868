/* Simulated NVML: values that are asked for by number. */
#include "../common/simwork.h"
#include "state.h"

#include <stddef.h>

/* Numbers of the lab's own, for what real monitoring gets by ways that are not simulated: counters
 * of the profiling hardware (in 1/10000), flags of newer interfaces, and the verdicts of DCGM's
 * health watches. lab/gpusim/go/exporter/fields.go has the same numbers. */
#define SIM_FIELD 0x51AA0000u

enum kind { NUMBER, COUNT, HELD_DOWN, SHARE, IF_SET };

static const struct field {
    unsigned id;
    enum kind kind;
    const char *key;
    uint64_t value; /* HELD_DOWN: reasons; SHARE: percent of the load that is set */
} fields[] = {
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, COUNT, "nvlink_crc_flit", 0},
    {NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, COUNT, "nvlink_crc_data", 0},
    {NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, COUNT, "nvlink_replay", 0},
    {NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, COUNT, "nvlink_recovery", 0},
    {NVML_FI_DEV_PERF_POLICY_POWER, HELD_DOWN, "", NVML_CLOCKS_SW_POWER_CAP},
    {NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, HELD_DOWN, "", NVML_CLOCKS_SYNC_BOOST},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, HELD_DOWN, "",
     NVML_CLOCKS_SW_THERMAL_SLOWDOWN},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, HELD_DOWN, "",
     NVML_CLOCKS_HW_THERMAL_SLOWDOWN},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, HELD_DOWN, "",
     NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN},
    {NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, NUMBER, "recovery_action", 0},
    {SIM_FIELD + 0, SHARE, "engine_active", 100},
    {SIM_FIELD + 1, SHARE, "sm_active", 90},
    {SIM_FIELD + 2, SHARE, "sm_occupancy", 50},
    {SIM_FIELD + 3, SHARE, "tensor_active", 35},
    {SIM_FIELD + 4, SHARE, "dram_active", 45},
    {SIM_FIELD + 5, SHARE, "fp64_active", 0},
    {SIM_FIELD + 6, SHARE, "fp32_active", 20},
    {SIM_FIELD + 7, SHARE, "fp16_active", 10},
    {SIM_FIELD + 8, SHARE, "nvlink_active", 44},
    {SIM_FIELD + 16, NUMBER, "sram_threshold", 0},
    {SIM_FIELD + 17, NUMBER, "memory_unrepairable", 0},
    {SIM_FIELD + 32, IF_SET, "health_pcie", 0},
    {SIM_FIELD + 33, IF_SET, "health_nvlink", 0},
    {SIM_FIELD + 34, IF_SET, "health_pmu", 0},
    {SIM_FIELD + 35, IF_SET, "health_mcu", 0},
    {SIM_FIELD + 36, IF_SET, "health_mem", 0},
    {SIM_FIELD + 37, IF_SET, "health_sm", 0},
    {SIM_FIELD + 38, IF_SET, "health_inforom", 0},
    {SIM_FIELD + 39, IF_SET, "health_thermal", 0},
    {SIM_FIELD + 40, IF_SET, "health_power", 0},
    {SIM_FIELD + 41, IF_SET, "health_driver", 0},
    {SIM_FIELD + 42, IF_SET, "health_all", 0},
};
#define UNSET UINT64_MAX

/* What of the shares SIM_FIELD + 0 and on each work of a process makes, in percent of that work:
 * arithmetic, copies within the memory, copies from the host and to it. */
static const unsigned of_work[][SIM_ALLOCATED] = {
    {100, 100, 0, 0}, /* engine */
    {98, 96, 0, 0},   /* SM */
    {90, 75, 0, 0},   /* occupancy */
    {0, 0, 0, 0},     /* tensor */
    {1, 90, 2, 2},    /* DRAM */
    {0, 0, 0, 0},     /* FP64 */
    {94, 2, 0, 0},    /* FP32 */
};

static uint64_t share(int gpu, const struct field *field) {
    uint64_t sum = sim_gpu_set_load((unsigned)gpu) * field->value;
    size_t row = field->id - SIM_FIELD;
    for (int what = 0; row < sizeof of_work / sizeof *of_work && what < SIM_ALLOCATED; what++)
        sum += (uint64_t)sim_work(gpu, (enum sim_work)what) * of_work[row][what];
    return sum > 10000 ? 10000 : sum;
}

static uint64_t read_value(int gpu, const struct field *field) {
    uint64_t percent;
    switch (field->kind) {
    case NUMBER: return sim_number(gpu, field->key, 0);
    case COUNT: return sim_links_up() ? sim_count(gpu, field->key) : UNSET;
    case HELD_DOWN: return sim_held_down_ns(gpu, field->value);
    case IF_SET: return sim_number(gpu, field->key, UNSET);
    case SHARE:
        percent = sim_number(gpu, field->key, UNSET);
        return percent != UNSET ? percent * 100 : share(gpu, field);
    }
    return UNSET;
}

static uint64_t read_by_id(int gpu, unsigned id) {
    if (id == NVML_FI_DEV_MEMORY_TEMP)
        return sim_number(gpu, "memory_temperature", 42 + sim_gpu_load((unsigned)gpu) * 2 / 5);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].id == id) return read_value(gpu, &fields[i]);
    return UNSET;
}

NVML_API nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    REQUIRE_DEVICE(device);
    for (int i = 0; i < count; i++) {
        uint64_t value = read_by_id((int)device->gpu, values[i].fieldId);
        values[i].timestamp = (long long)(sim_now() * 1e6);
        values[i].latencyUsec = 0;
        values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        values[i].nvmlReturn = value == UNSET ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
        values[i].value.ullVal = value == UNSET ? 0 : value;
    }
    return NVML_SUCCESS;
}
