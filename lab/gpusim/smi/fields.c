/* Simulated nvidia-smi: the facts that --query-gpu, -q and the table print. */
#include "smi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef nvmlReturn_t (*reader)(const struct gpu *gpu, char out[SMI_VALUE]);

/* A reader of one unsigned number, divided by `divisor`. */
#define READ_NUMBER(name, call, divisor)                                     \
    static nvmlReturn_t name(const struct gpu *gpu, char out[SMI_VALUE]) {   \
        unsigned value = 0;                                                  \
        nvmlReturn_t result = call;                                          \
        snprintf(out, SMI_VALUE, "%u", value / (divisor));                   \
        return result;                                                       \
    }
#define READ_TEXT(name, call)                                                \
    static nvmlReturn_t name(const struct gpu *gpu, char out[SMI_VALUE]) {   \
        return call(gpu->device, out, SMI_VALUE);                            \
    }
#define READ_SWITCH(name, call)                                              \
    static nvmlReturn_t name(const struct gpu *gpu, char out[SMI_VALUE]) {   \
        unsigned value = 0, other UNUSED = 0;                                \
        nvmlReturn_t result = call;                                          \
        snprintf(out, SMI_VALUE, "%s", value ? "Enabled" : "Disabled");      \
        return result;                                                       \
    }
#define UNUSED __attribute__((unused))

READ_NUMBER(index_, nvmlDeviceGetIndex(gpu->device, &value), 1)
READ_TEXT(uuid, nvmlDeviceGetUUID)
READ_TEXT(name, nvmlDeviceGetName)
READ_TEXT(serial, nvmlDeviceGetSerial)
READ_TEXT(vbios, nvmlDeviceGetVbiosVersion)
READ_NUMBER(temperature, nvmlDeviceGetTemperature(gpu->device, 0, &value), 1)
READ_NUMBER(clock_sm, nvmlDeviceGetClockInfo(gpu->device, 1, &value), 1)
READ_NUMBER(clock_memory, nvmlDeviceGetClockInfo(gpu->device, NVML_CLOCK_MEM, &value), 1)
READ_NUMBER(clock_sm_max, nvmlDeviceGetMaxClockInfo(gpu->device, 1, &value), 1)
READ_NUMBER(link_gen, nvmlDeviceGetCurrPcieLinkGeneration(gpu->device, &value), 1)
READ_NUMBER(link_gen_max, nvmlDeviceGetMaxPcieLinkGeneration(gpu->device, &value), 1)
READ_NUMBER(link_width, nvmlDeviceGetCurrPcieLinkWidth(gpu->device, &value), 1)
READ_NUMBER(link_width_max, nvmlDeviceGetMaxPcieLinkWidth(gpu->device, &value), 1)
READ_SWITCH(persistence, nvmlDeviceGetPersistenceMode(gpu->device, &value))
READ_SWITCH(ecc_mode, nvmlDeviceGetEccMode(gpu->device, &value, &other))
READ_SWITCH(mig_mode, nvmlDeviceGetMigMode(gpu->device, &value, &other))

static nvmlReturn_t driver(const struct gpu *gpu UNUSED, char out[SMI_VALUE]) {
    return nvmlSystemGetDriverVersion(out, SMI_VALUE);
}

static nvmlReturn_t count(const struct gpu *gpu UNUSED, char out[SMI_VALUE]) {
    unsigned value = 0;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&value);
    snprintf(out, SMI_VALUE, "%u", value);
    return result;
}

static nvmlReturn_t timestamp(const struct gpu *gpu UNUSED, char out[SMI_VALUE]) {
    time_t now = time(NULL);
    struct tm local;
    strftime(out, SMI_VALUE, "%Y/%m/%d %H:%M:%S.000", localtime_r(&now, &local));
    return NVML_SUCCESS;
}

static nvmlReturn_t bus_id(const struct gpu *gpu, char out[SMI_VALUE]) {
    nvmlPciInfo_t pci;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(gpu->device, &pci);
    if (result == NVML_SUCCESS) snprintf(out, SMI_VALUE, "%s", pci.busId);
    return result;
}

static nvmlReturn_t pci_device(const struct gpu *gpu, char out[SMI_VALUE]) {
    nvmlPciInfo_t pci;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(gpu->device, &pci);
    if (result == NVML_SUCCESS) snprintf(out, SMI_VALUE, "0x%08X", pci.pciDeviceId);
    return result;
}

static nvmlReturn_t memory(const struct gpu *gpu, nvmlMemory_v2_t *info) {
    info->version = sizeof *info | 2u << 24;
    return nvmlDeviceGetMemoryInfo_v2(gpu->device, info);
}
#define READ_MEMORY(part)                                                             \
    static nvmlReturn_t memory_##part(const struct gpu *gpu, char out[SMI_VALUE]) {   \
        nvmlMemory_v2_t info;                                                         \
        nvmlReturn_t result = memory(gpu, &info);                                     \
        if (result == NVML_SUCCESS) snprintf(out, SMI_VALUE, "%llu", info.part >> 20); \
        return result;                                                                \
    }
READ_MEMORY(total)
READ_MEMORY(reserved)
READ_MEMORY(used)
READ_MEMORY(free)

#define READ_WATTS(name, call)                                             \
    static nvmlReturn_t name(const struct gpu *gpu, char out[SMI_VALUE]) { \
        unsigned milliwatt = 0;                                            \
        nvmlReturn_t result = call(gpu->device, &milliwatt);               \
        snprintf(out, SMI_VALUE, "%.2f", milliwatt / 1000.0);              \
        return result;                                                     \
    }
READ_WATTS(power, nvmlDeviceGetPowerUsage)
READ_WATTS(power_limit, nvmlDeviceGetPowerManagementLimit)
READ_WATTS(power_default, nvmlDeviceGetPowerManagementDefaultLimit)

#define READ_LOAD(part)                                                             \
    static nvmlReturn_t load_##part(const struct gpu *gpu, char out[SMI_VALUE]) {   \
        nvmlUtilization_t rates = {0, 0};                                           \
        nvmlReturn_t result = nvmlDeviceGetUtilizationRates(gpu->device, &rates);   \
        snprintf(out, SMI_VALUE, "%u", rates.part);                                 \
        return result;                                                              \
    }
READ_LOAD(gpu)
READ_LOAD(memory)

#define READ_ECC(name, type, aggregate)                                                      \
    static nvmlReturn_t name(const struct gpu *gpu, char out[SMI_VALUE]) {                   \
        unsigned long long errors = 0;                                                       \
        nvmlReturn_t result =                                                                \
            nvmlDeviceGetTotalEccErrors(gpu->device, type, aggregate, &errors);              \
        snprintf(out, SMI_VALUE, "%llu", errors);                                            \
        return result;                                                                       \
    }
READ_ECC(ecc_corrected, 0, 0)
READ_ECC(ecc_uncorrected, 1, 0)
READ_ECC(ecc_corrected_life, 0, 1)
READ_ECC(ecc_uncorrected_life, 1, 1)

#define READ_ROWS(part)                                                                      \
    static nvmlReturn_t rows_##part(const struct gpu *gpu, char out[SMI_VALUE]) {            \
        unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;               \
        nvmlReturn_t result = nvmlDeviceGetRemappedRows(gpu->device, &correctable,           \
                                                        &uncorrectable, &pending, &failure); \
        snprintf(out, SMI_VALUE, "%u", part);                                                \
        return result;                                                                       \
    }
READ_ROWS(correctable)
READ_ROWS(uncorrectable)
READ_ROWS(pending)
READ_ROWS(failure)

/* As nvidia-smi words them; a GPU without a fabric has neither. */
static nvmlReturn_t fabric(const struct gpu *gpu, nvmlGpuFabricInfo_t *info) {
    nvmlReturn_t result = nvmlDeviceGetGpuFabricInfo(gpu->device, info);
    return result == NVML_SUCCESS && info->state == 0 ? NVML_ERROR_NOT_SUPPORTED : result;
}

static nvmlReturn_t fabric_state(const struct gpu *gpu, char out[SMI_VALUE]) {
    static const char *const words[] = {"Not Supported", "Not Started", "In Progress", "Completed"};
    nvmlGpuFabricInfo_t info;
    nvmlReturn_t result = fabric(gpu, &info);
    if (result == NVML_SUCCESS) snprintf(out, SMI_VALUE, "%s", words[info.state & 3]);
    return result;
}

static nvmlReturn_t fabric_status(const struct gpu *gpu, char out[SMI_VALUE]) {
    nvmlGpuFabricInfo_t info;
    nvmlReturn_t result = fabric(gpu, &info);
    if (result != NVML_SUCCESS) return result;
    if (info.state != 3) return NVML_ERROR_NOT_SUPPORTED;
    snprintf(out, SMI_VALUE, "%s",
             info.status == NVML_SUCCESS ? "Success" : nvmlErrorString(info.status));
    return NVML_SUCCESS;
}

static nvmlReturn_t pstate(const struct gpu *gpu, char out[SMI_VALUE]) {
    unsigned state = 0;
    nvmlReturn_t result = nvmlDeviceGetPerformanceState(gpu->device, &state);
    snprintf(out, SMI_VALUE, "P%u", state);
    return result;
}

static nvmlReturn_t compute_cap(const struct gpu *gpu, char out[SMI_VALUE]) {
    int major = 0, minor = 0;
    nvmlReturn_t result = nvmlDeviceGetCudaComputeCapability(gpu->device, &major, &minor);
    snprintf(out, SMI_VALUE, "%d.%d", major, minor);
    return result;
}

static nvmlReturn_t compute_mode(const struct gpu *gpu UNUSED, char out[SMI_VALUE]) {
    snprintf(out, SMI_VALUE, "Default");
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_events(const struct gpu *gpu, char out[SMI_VALUE]) {
    unsigned long long reasons = 0;
    nvmlReturn_t result = nvmlDeviceGetCurrentClocksEventReasons(gpu->device, &reasons);
    snprintf(out, SMI_VALUE, "0x%016llX", reasons);
    return result;
}

static const struct field {
    const char *name, *other_name, *unit;
    reader read;
} fields[] = {
    {"timestamp", "", "", timestamp},
    {"driver_version", "", "", driver},
    {"count", "", "", count},
    {"index", "", "", index_},
    {"name", "gpu_name", "", name},
    {"uuid", "gpu_uuid", "", uuid},
    {"serial", "gpu_serial", "", serial},
    {"pci.bus_id", "gpu_bus_id", "", bus_id},
    {"pci.device_id", "", "", pci_device},
    {"vbios_version", "", "", vbios},
    {"persistence_mode", "", "", persistence},
    {"compute_cap", "", "", compute_cap},
    {"compute_mode", "", "", compute_mode},
    {"pstate", "", "", pstate},
    {"memory.total", "", "MiB", memory_total},
    {"memory.reserved", "", "MiB", memory_reserved},
    {"memory.used", "", "MiB", memory_used},
    {"memory.free", "", "MiB", memory_free},
    {"temperature.gpu", "", "", temperature},
    {"power.draw", "", "W", power},
    {"power.limit", "enforced.power.limit", "W", power_limit},
    {"power.default_limit", "", "W", power_default},
    {"utilization.gpu", "", "%", load_gpu},
    {"utilization.memory", "", "%", load_memory},
    {"clocks.current.sm", "clocks.sm", "MHz", clock_sm},
    {"clocks.current.memory", "clocks.mem", "MHz", clock_memory},
    {"clocks.max.sm", "", "MHz", clock_sm_max},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", "", clock_events},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", "", link_gen},
    {"pcie.link.gen.max", "", "", link_gen_max},
    {"pcie.link.width.current", "", "", link_width},
    {"pcie.link.width.max", "", "", link_width_max},
    {"ecc.mode.current", "", "", ecc_mode},
    {"ecc.mode.pending", "", "", ecc_mode},
    {"ecc.errors.corrected.volatile.total", "", "", ecc_corrected},
    {"ecc.errors.uncorrected.volatile.total", "", "", ecc_uncorrected},
    {"ecc.errors.corrected.aggregate.total", "", "", ecc_corrected_life},
    {"ecc.errors.uncorrected.aggregate.total", "", "", ecc_uncorrected_life},
    {"remapped_rows.correctable", "", "", rows_correctable},
    {"remapped_rows.uncorrectable", "", "", rows_uncorrectable},
    {"remapped_rows.pending", "", "", rows_pending},
    {"remapped_rows.failure", "", "", rows_failure},
    {"mig.mode.current", "", "", mig_mode},
    {"mig.mode.pending", "", "", mig_mode},
    {"fabric.state", "", "", fabric_state},
    {"fabric.status", "", "", fabric_status},
};

static const struct field *find(const char *wanted) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i].name, wanted) == 0 || strcmp(fields[i].other_name, wanted) == 0)
            return &fields[i];
    return NULL;
}

const char *smi_unit(const char *field) {
    const struct field *found = find(field);
    return found ? found->unit : NULL;
}

void smi_value(const struct gpu *gpu, const char *field, int with_unit, char out[SMI_VALUE]) {
    const struct field *found = find(field);
    char value[SMI_VALUE];
    nvmlReturn_t result = found ? found->read(gpu, value) : NVML_ERROR_NOT_FOUND;
    if (result == NVML_ERROR_NOT_SUPPORTED)
        snprintf(out, SMI_VALUE, "[N/A]");
    else if (result != NVML_SUCCESS)
        snprintf(out, SMI_VALUE, "[%.100s]", nvmlErrorString(result));
    else
        snprintf(out, SMI_VALUE, "%.100s%s%s", value, with_unit && *found->unit ? " " : "",
                 with_unit ? found->unit : "");
}
