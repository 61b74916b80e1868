/* Simulated NVML: memory errors and XID events. */
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 100000
#define MEMORY_BANKS 2560

struct nvmlEventSet_st {
    unsigned registered;           /* one bit per GPU */
    unsigned seen[SIM_MAX_GPUS];   /* XIDs already delivered, or older than registering */
};

NVML_API nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    REQUIRE_DEVICE(device);
    *current = *pending = (unsigned)sim_number((int)device->gpu, "ecc", 1);
    return NVML_SUCCESS;
}

/* `aggregate` counts over the GPU's life, else since the driver was loaded or the GPU reset. */
NVML_API nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned aggregate,
                                     unsigned long long *errors) {
    REQUIRE_DEVICE(device);
    uint64_t recent = sim_number((int)device->gpu, type ? "ecc_dbe" : "ecc_sbe", 0);
    uint64_t life = sim_number((int)device->gpu, type ? "ecc_dbe_agg" : "ecc_sbe_agg", 0);
    *errors = aggregate && life > recent ? life : recent;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned type, unsigned counter,
                                         unsigned location UNUSED, unsigned long long *errors) {
    return nvmlDeviceGetTotalEccErrors(device, type, counter, errors);
}

NVML_API nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *correctable,
                                   unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
    REQUIRE_DEVICE(device);
    int gpu = (int)device->gpu;
    *correctable = (unsigned)sim_number(gpu, "row_remap_correctable", 0);
    *uncorrectable = (unsigned)sim_number(gpu, "row_remap_uncorrectable", 0);
    *pending = (unsigned)sim_number(gpu, "row_remap_pending", 0);
    *failed = (unsigned)sim_number(gpu, "row_remap_failure", 0);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device UNUSED,
                                                unsigned *pending UNUSED) {
    return NVML_ERROR_NOT_SUPPORTED; /* rows are remapped since Ampere, pages no longer retired */
}

/* Of an H100's banks, those in "row_remap_banks_none" have no spare row left. */
NVML_API nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                           nvmlRowRemapperHistogramValues_t *banks) {
    REQUIRE_DEVICE(device);
    unsigned none = (unsigned)sim_number((int)device->gpu, "row_remap_banks_none", 0);
    *banks = (nvmlRowRemapperHistogramValues_t){.max = MEMORY_BANKS - none, .none = none};
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    REQUIRE_DEVICE(device);
    *types = 0x1f; /* single and double bit errors, P-states, XIDs, clocks */
    return NVML_SUCCESS;
}

NVML_API nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    *set = calloc(1, sizeof **set);
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

NVML_API nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                  nvmlEventSet_t set) {
    REQUIRE_DEVICE(device);
    if (!(types & NVML_EVENT_XID_CRITICAL_ERROR)) return NVML_SUCCESS; /* no other is simulated */
    set->registered |= 1u << device->gpu;
    set->seen[device->gpu] = sim_event_count((int)device->gpu, "xid");
    return NVML_SUCCESS;
}

static int next_event(nvmlEventSet_t set, nvmlEventData_t *event) {
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (!(set->registered >> gpu & 1)) continue;
        /* Fewer than seen: the driver was loaded again, so all of them are new. */
        if (sim_event_count((int)gpu, "xid") < set->seen[gpu]) set->seen[gpu] = 0;
        if (sim_event_count((int)gpu, "xid") == set->seen[gpu]) continue;
        memset(event, 0, sizeof *event);
        event->device = sim_handle(gpu);
        event->eventType = NVML_EVENT_XID_CRITICAL_ERROR;
        event->eventData = sim_event((int)gpu, "xid", set->seen[gpu]++);
        event->gpuInstanceId = event->computeInstanceId = NVML_NO_INSTANCE;
        return 1;
    }
    return 0;
}

NVML_API nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned timeout_ms) {
    for (unsigned waited = 0;; waited += POLL_US / 1000) {
        nvmlReturn_t entered = sim_enter();
        if (entered != NVML_SUCCESS) return entered;
        if (next_event(set, event)) return NVML_SUCCESS;
        if (waited >= timeout_ms) return NVML_ERROR_TIMEOUT;
        usleep(POLL_US);
    }
}

NVML_API nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *event, unsigned timeout_ms) {
    return nvmlEventSetWait_v2(set, event, timeout_ms);
}

NVML_API nvmlEventSetFree(nvmlEventSet_t set) {
    free(set);
    return NVML_SUCCESS;
}
