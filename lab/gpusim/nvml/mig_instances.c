/* Simulated NVML: GPU instances and their compute instances, made, listed and ended. */
#include "mig.h"

#include <string.h>

struct nvmlGpuInstance_st {
    char unused; /* a handle is a place in its table */
};
struct nvmlComputeInstance_st {
    char unused;
};
static struct nvmlGpuInstance_st instances[SIM_MAX_GPUS * SIM_GPU_INSTANCES];
static struct nvmlComputeInstance_st
    computes[SIM_MAX_GPUS * SIM_GPU_INSTANCES * SIM_COMPUTE_INSTANCES];
#define INSTANCES (sizeof instances / sizeof instances[0])
#define COMPUTES (sizeof computes / sizeof computes[0])

/* Compute slices of the kinds of compute instances (NVML_COMPUTE_INSTANCE_PROFILE_…). */
static const unsigned kinds[] = {1, 2, 3, 4, 7};
#define KINDS (sizeof kinds / sizeof kinds[0])

static nvmlReturn_t enter_instance(nvmlGpuInstance_t handle, struct sim_gpu_instance *found) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    if (handle < instances || handle >= instances + INSTANCES) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned place = (unsigned)(handle - instances);
    *found = (struct sim_gpu_instance){place / SIM_GPU_INSTANCES, place % SIM_GPU_INSTANCES};
    return sim_instance(found->gpu, found->id, NULL) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t enter_compute(nvmlComputeInstance_t handle, struct sim_compute_instance *found) {
    nvmlReturn_t entered = sim_enter();
    if (entered != NVML_SUCCESS) return entered;
    if (handle < computes || handle >= computes + COMPUTES) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned place = (unsigned)(handle - computes), of_gpu = place / SIM_COMPUTE_INSTANCES;
    *found = (struct sim_compute_instance){of_gpu / SIM_GPU_INSTANCES, of_gpu % SIM_GPU_INSTANCES,
                                           place % SIM_COMPUTE_INSTANCES};
    return sim_compute(found->gpu, found->instance, found->id) ? NVML_SUCCESS
                                                               : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlGpuInstance_t instance_handle(unsigned gpu, unsigned id) {
    return &instances[gpu * SIM_GPU_INSTANCES + id];
}

static nvmlComputeInstance_t compute_handle(unsigned gpu, unsigned instance, unsigned id) {
    return &computes[(gpu * SIM_GPU_INSTANCES + instance) * SIM_COMPUTE_INSTANCES + id];
}

#define REQUIRE_ENABLED(device)                                             \
    do {                                                                    \
        REQUIRE_DEVICE(device);                                             \
        if (!sim_mig_enabled(device->gpu)) return NVML_ERROR_NOT_SUPPORTED; \
    } while (0)

NVML_API nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned kind,
                                             nvmlGpuInstanceProfileInfo_t *out) {
    REQUIRE_DEVICE(device);
    const struct sim_profile *profile = sim_profile_of(kind);
    if (!sim_mig_capable(device->gpu) || !profile) return NVML_ERROR_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->id = sim_profile_id(device->gpu, profile);
    out->sliceCount = profile->compute;
    out->instanceCount = profile->instances;
    out->multiprocessorCount = sim_profile_sms(device->gpu, profile->compute);
    out->copyEngineCount = profile->compute;
    out->memorySizeMB = sim_profile_mib(device->gpu, profile);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned profile_id,
                                                       nvmlGpuInstancePlacement_t *places,
                                                       unsigned *count) {
    REQUIRE_DEVICE(device);
    const struct sim_profile *profile = sim_profile_with_id(device->gpu, profile_id);
    if (!sim_mig_capable(device->gpu) || !profile) return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; places && i < profile->start_count; i++)
        places[i] = (nvmlGpuInstancePlacement_t){profile->starts[i], profile->memory};
    *count = profile->start_count;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned profile_id,
                                                   unsigned *count) {
    REQUIRE_ENABLED(device);
    const struct sim_profile *profile = sim_profile_with_id(device->gpu, profile_id);
    if (!profile) return NVML_ERROR_INVALID_ARGUMENT;
    *count = sim_room_for(device->gpu, profile);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned profile_id,
                                     nvmlGpuInstance_t *instance) {
    REQUIRE_ENABLED(device);
    const struct sim_profile *profile = sim_profile_with_id(device->gpu, profile_id);
    unsigned id = 0;
    if (!profile) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t made = sim_make_instance(device->gpu, profile, &id);
    if (made == NVML_SUCCESS) *instance = instance_handle(device->gpu, id);
    return made;
}

NVML_API nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned profile_id,
                                   nvmlGpuInstance_t *found, unsigned *count) {
    REQUIRE_ENABLED(device);
    const struct sim_profile *profile = sim_profile_with_id(device->gpu, profile_id);
    if (!profile) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned id = 0; id < SIM_GPU_INSTANCES; id++)
        if (sim_instance(device->gpu, id, NULL) == profile)
            found[(*count)++] = instance_handle(device->gpu, id);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *found) {
    REQUIRE_ENABLED(device);
    if (!sim_instance(device->gpu, id, NULL)) return NVML_ERROR_NOT_FOUND;
    *found = instance_handle(device->gpu, id);
    return NVML_SUCCESS;
}

NVML_API nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info) {
    struct sim_gpu_instance it;
    nvmlReturn_t entered = enter_instance(handle, &it);
    if (entered != NVML_SUCCESS) return entered;
    unsigned start = 0;
    const struct sim_profile *profile = sim_instance(it.gpu, it.id, &start);
    *info = (nvmlGpuInstanceInfo_t){sim_handle(it.gpu), it.id, sim_profile_id(it.gpu, profile),
                                    {start, profile->memory}};
    return NVML_SUCCESS;
}

NVML_API nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
    struct sim_gpu_instance it;
    nvmlReturn_t entered = enter_instance(handle, &it);
    return entered == NVML_SUCCESS ? sim_end_instance(it.gpu, it.id) : entered;
}

NVML_API nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned kind,
                                                      unsigned engine,
                                                      nvmlComputeInstanceProfileInfo_t *out) {
    struct sim_gpu_instance it;
    nvmlReturn_t entered = enter_instance(handle, &it);
    if (entered != NVML_SUCCESS) return entered;
    const struct sim_profile *profile = sim_instance(it.gpu, it.id, NULL);
    if (engine || kind >= KINDS || kinds[kind] > profile->compute) return NVML_ERROR_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->id = kind;
    out->sliceCount = kinds[kind];
    out->instanceCount = profile->compute / kinds[kind];
    out->multiprocessorCount = sim_profile_sms(it.gpu, kinds[kind]);
    out->sharedCopyEngineCount = profile->compute;
    return NVML_SUCCESS;
}

NVML_API nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned kind,
                                              nvmlComputeInstance_t *found) {
    struct sim_gpu_instance it;
    unsigned id = 0;
    nvmlReturn_t result = enter_instance(handle, &it);
    if (result != NVML_SUCCESS) return result;
    if (kind >= KINDS) return NVML_ERROR_INVALID_ARGUMENT;
    result = sim_make_compute(it.gpu, it.id, kinds[kind], &id);
    if (result == NVML_SUCCESS) *found = compute_handle(it.gpu, it.id, id);
    return result;
}

NVML_API nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned kind,
                                            nvmlComputeInstance_t *found, unsigned *count) {
    struct sim_gpu_instance it;
    nvmlReturn_t entered = enter_instance(handle, &it);
    if (entered != NVML_SUCCESS) return entered;
    if (kind >= KINDS) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned id = 0; id < SIM_COMPUTE_INSTANCES; id++)
        if (sim_compute(it.gpu, it.id, id) == kinds[kind])
            found[(*count)++] = compute_handle(it.gpu, it.id, id);
    return NVML_SUCCESS;
}

NVML_API nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned id,
                                               nvmlComputeInstance_t *found) {
    struct sim_gpu_instance it;
    nvmlReturn_t entered = enter_instance(handle, &it);
    if (entered != NVML_SUCCESS) return entered;
    if (!sim_compute(it.gpu, it.id, id)) return NVML_ERROR_NOT_FOUND;
    *found = compute_handle(it.gpu, it.id, id);
    return NVML_SUCCESS;
}

NVML_API nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle,
                                       nvmlComputeInstanceInfo_t *info) {
    struct sim_compute_instance it;
    nvmlReturn_t entered = enter_compute(handle, &it);
    if (entered != NVML_SUCCESS) return entered;
    unsigned slices = sim_compute(it.gpu, it.instance, it.id), kind = 0;
    while (kind + 1 < KINDS && kinds[kind] != slices) kind++;
    *info = (nvmlComputeInstanceInfo_t){sim_handle(it.gpu), instance_handle(it.gpu, it.instance),
                                        it.id, kind, {it.id, slices}};
    return NVML_SUCCESS;
}

NVML_API nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info) {
    return nvmlComputeInstanceGetInfo_v2(handle, info);
}

NVML_API nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
    struct sim_compute_instance it;
    nvmlReturn_t entered = enter_compute(handle, &it);
    return entered == NVML_SUCCESS ? sim_end_compute(it.gpu, it.instance, it.id) : entered;
}
