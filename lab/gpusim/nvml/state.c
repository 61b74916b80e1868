/* Simulated NVML: initialization, handles and device counting. */
#include "mig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static atomic_int users; /* initializations less shutdowns */
static struct nvmlDevice_st handles[SIM_MAX_GPUS] = {
    {0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15},
};

nvmlReturn_t sim_enter(void) {
    if (atomic_load(&users) <= 0) return NVML_ERROR_UNINITIALIZED;
    sim_refresh();
    return NVML_SUCCESS;
}

nvmlReturn_t sim_enter_device(nvmlDevice_t device) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    /* After the driver was unloaded under a running process, no device answers. */
    if (sim_driver_state() == SIM_DRIVER_NOT_LOADED) return NVML_ERROR_UNKNOWN;
    if (device < handles || device >= handles + SIM_MAX_GPUS || device->gpu >= sim_gpu_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sim_number((int)device->gpu, "lost", 0)) return NVML_ERROR_GPU_IS_LOST;
    return NVML_SUCCESS;
}

nvmlDevice_t sim_handle(unsigned gpu) {
    return &handles[gpu];
}

unsigned sim_index_of(unsigned gpu) {
    unsigned index = 0;
    for (unsigned other = 0; other < gpu; other++) index += sim_gpu_visible(other) ? 1 : 0;
    return index;
}

int sim_gpu_at(unsigned index) {
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++)
        if (sim_gpu_visible(gpu) && index-- == 0) return (int)gpu;
    return -1;
}

nvmlReturn_t sim_copy(char *out, unsigned length, const char *text) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

NVML_API nvmlInitWithFlags(unsigned flags UNUSED) {
    sim_refresh();
    switch (sim_driver_state()) {
    case SIM_DRIVER_NOT_LOADED:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case SIM_DRIVER_MISMATCH:
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case SIM_DRIVER_READY:
        break;
    }
    atomic_fetch_add(&users, 1);
    return NVML_SUCCESS;
}

NVML_API nvmlInit_v2(void) {
    return nvmlInitWithFlags(0);
}

NVML_API nvmlInit(void) {
    return nvmlInitWithFlags(0);
}

NVML_API nvmlShutdown(void) {
    if (atomic_load(&users) <= 0) return NVML_ERROR_UNINITIALIZED;
    atomic_fetch_sub(&users, 1);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCount_v2(unsigned *count) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = sim_index_of(sim_gpu_count());
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCount(unsigned *count) {
    return nvmlDeviceGetCount_v2(count);
}

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    int gpu = sim_gpu_at(index);
    if (!device || gpu < 0) return NVML_ERROR_INVALID_ARGUMENT;
    *device = sim_handle((unsigned)gpu);
    return sim_enter_device(*device);
}

NVML_API nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_API nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
    if (strncmp(uuid, "MIG-", 4) == 0) return sim_mig_find(uuid, device);
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        char own[SIM_TEXT];
        sim_gpu_uuid(gpu, own);
        if (!sim_gpu_visible(gpu) || strcmp(own, uuid) != 0) continue;
        *device = sim_handle(gpu);
        return sim_enter_device(*device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    const char *tail = bus_id ? strchr(bus_id, ':') : NULL; /* domains have 4 or 8 digits */
    if (!tail || !device) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        char own[16];
        snprintf(own, sizeof own, ":%02X:00.0", sim_gpu_bus(gpu));
        if (!sim_gpu_visible(gpu) || strcasecmp(own, tail) != 0) continue;
        *device = sim_handle(gpu);
        return sim_enter_device(*device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
