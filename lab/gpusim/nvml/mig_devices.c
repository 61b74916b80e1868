/* Simulated NVML: MIG devices, which are compute instances of GPU instances, and their mode. */
#include "mig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A handle is a place in this table, which says nothing of whether the device exists. */
static struct nvmlDevice_st handles[SIM_MAX_GPUS * SIM_GPU_INSTANCES * SIM_COMPUTE_INSTANCES];
#define HANDLES (sizeof handles / sizeof handles[0])

nvmlDevice_t sim_mig_handle(unsigned gpu, unsigned instance, unsigned id) {
    return &handles[(gpu * SIM_GPU_INSTANCES + instance) * SIM_COMPUTE_INSTANCES + id];
}

nvmlReturn_t sim_mig_enter(nvmlDevice_t device, struct sim_compute_instance *found) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    if (device < handles || device >= handles + HANDLES) {
        entered = sim_enter_device(device);
        return entered == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : entered; /* a whole GPU */
    }
    unsigned place = (unsigned)(device - handles), inside = SIM_GPU_INSTANCES * SIM_COMPUTE_INSTANCES;
    found->gpu = place / inside;
    found->instance = place % inside / SIM_COMPUTE_INSTANCES;
    found->id = place % SIM_COMPUTE_INSTANCES;
    if ((entered = sim_enter_device(sim_handle(found->gpu))) != NVML_SUCCESS) return entered;
    return sim_compute(found->gpu, found->instance, found->id) ? NVML_SUCCESS
                                                               : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t sim_mig_find(const char *uuid, nvmlDevice_t *device) {
    char own[SIM_TEXT];
    struct sim_compute_instance mig;
    for (size_t i = 0; i < HANDLES; i++) {
        *device = &handles[i];
        if (sim_mig_enter(*device, &mig) != NVML_SUCCESS || !sim_gpu_visible(mig.gpu) ||
            !sim_mig_visible(&mig))
            continue;
        sim_mig_uuid(&mig, own);
        if (strcmp(own, uuid) == 0) return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    REQUIRE_DEVICE(device);
    if (!sim_mig_capable(device->gpu)) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = (unsigned)sim_mig_enabled(device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t *activation) {
    REQUIRE_DEVICE(device);
    if (!sim_mig_capable(device->gpu)) return NVML_ERROR_NOT_SUPPORTED;
    if (mode > 1 || !activation) return NVML_ERROR_INVALID_ARGUMENT;
    *activation = NVML_SUCCESS;
    for (unsigned id = 0; !mode && id < SIM_GPU_INSTANCES; id++)
        if (sim_instance(device->gpu, id, NULL)) return NVML_ERROR_IN_USE;
    if (sim_append((int)device->gpu, "mig_mode", mode) == 0) return NVML_SUCCESS;
    return errno == EACCES || errno == EROFS ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
}

NVML_API nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    REQUIRE_DEVICE(device);
    *count = sim_mig_capable(device->gpu) ? SIM_COMPUTE_INSTANCES : 0;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig) {
    REQUIRE_DEVICE(device);
    if (!sim_mig_capable(device->gpu)) return NVML_ERROR_NOT_SUPPORTED;
    for (struct sim_compute_instance found = {.gpu = device->gpu}; sim_mig_next(&found); found.id++)
        if (index-- == 0) {
            *mig = sim_mig_handle(found.gpu, found.instance, found.id);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig) {
    struct sim_compute_instance found;
    *is_mig = sim_mig_enter(device, &found) == NVML_SUCCESS;
    return *is_mig ? NVML_SUCCESS : sim_enter_device(device);
}

NVML_API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *parent) {
    struct sim_compute_instance found;
    nvmlReturn_t entered = sim_mig_enter(device, &found);
    if (entered == NVML_SUCCESS) *parent = sim_handle(found.gpu);
    return entered;
}

NVML_API nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) {
    struct sim_compute_instance found;
    nvmlReturn_t entered = sim_mig_enter(device, &found);
    if (entered == NVML_SUCCESS) *id = found.instance;
    return entered;
}

NVML_API nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) {
    struct sim_compute_instance found;
    nvmlReturn_t entered = sim_mig_enter(device, &found);
    if (entered == NVML_SUCCESS) *id = found.id;
    return entered;
}

NVML_API nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out) {
    struct sim_compute_instance found;
    nvmlReturn_t entered = sim_mig_enter(device, &found);
    if (entered != NVML_SUCCESS) return entered;
    const struct sim_profile *profile = sim_instance(found.gpu, found.instance, NULL);
    unsigned slices = sim_compute(found.gpu, found.instance, found.id);
    memset(out, 0, sizeof *out);
    out->multiprocessorCount = sim_profile_sms(found.gpu, slices);
    out->sharedCopyEngineCount = profile->compute;
    out->gpuInstanceSliceCount = profile->compute;
    out->computeInstanceSliceCount = slices;
    out->memorySizeMB = sim_profile_mib(found.gpu, profile);
    return NVML_SUCCESS;
}
