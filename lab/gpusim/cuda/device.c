/* Simulated libcuda: initialization, devices and contexts. */
#include "../common/simmig.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A GPU, or the MIG device of one. CUDA shows one MIG device at most (MIG User Guide, "CUDA Device
 * Enumeration"), and none where it shows whole GPUs. */
struct device {
    unsigned gpu;
    int divided;
    struct sim_compute_instance mig;
};

static struct device devices[SIM_MAX_GPUS];
static int device_total, initialized;
static __thread int current_device = -1;

static int can_open(unsigned gpu) {
    const char *folder = getenv("SIM_GPU_DEV");
    char path[256];
    snprintf(path, sizeof path, "%s/nvidia%u", folder ? folder : "/dev", gpu);
    return access(path, R_OK | W_OK) == 0;
}

/* A GPU that can be opened; with MIG its first MIG device, which has to be there. */
static int device_of(unsigned gpu, struct device *out) {
    *out = (struct device){.gpu = gpu, .divided = sim_mig_enabled(gpu), .mig = {.gpu = gpu}};
    return can_open(gpu) && (!out->divided || sim_mig_next(&out->mig));
}

/* The MIG device that an entry of CUDA_VISIBLE_DEVICES names. */
static int named_mig(const char *entry, size_t length, struct device *out) {
    char uuid[SIM_TEXT];
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (!device_of(gpu, out) || !out->divided) continue;
        for (; sim_mig_next(&out->mig); out->mig.id++) {
            sim_mig_uuid(&out->mig, uuid);
            if (strlen(uuid) == length && !strncmp(uuid, entry, length)) return 1;
        }
    }
    return 0;
}

/* What one entry of CUDA_VISIBLE_DEVICES names: a MIG device, or a GPU by UUID (or its beginning) or
 * by its number among those that can be opened. */
static int named(const char *entry, size_t length, struct device *out) {
    char uuid[SIM_TEXT], *end;
    if (!strncmp(entry, "MIG-", 4)) return named_mig(entry, length, out);
    long number = strtol(entry, &end, 10);
    int by_number = end == entry + length && end != entry, seen = 0;
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (!can_open(gpu)) continue;
        sim_gpu_uuid(gpu, uuid);
        if (by_number ? seen == number : length > 4 && !strncmp(uuid, entry, length))
            return device_of(gpu, out);
        seen++;
    }
    return 0;
}

static void find_all(void) {
    struct device found;
    for (int divided = 0; divided < 2 && !device_total; divided++)
        for (unsigned gpu = 0; gpu < sim_gpu_count() && !(divided && device_total); gpu++)
            if (device_of(gpu, &found) && found.divided == divided) devices[device_total++] = found;
}

/* CUDA shows the GPUs that the variable names, in its order, up to the first that is none. */
static void find_devices(const char *visible) {
    device_total = 0;
    if (!visible) find_all();
    while (visible && *visible && device_total < SIM_MAX_GPUS) {
        size_t length = strcspn(visible, ",");
        if (!named(visible, length, &devices[device_total])) return;
        if (devices[device_total++].divided) return;
        visible += length + (visible[length] == ',');
    }
}

/* A machine with NVSwitches needs its fabric manager before CUDA starts. */
static int fabric_missing(void) {
    return sim_number(SIM_ALL_GPUS, "nvswitches", 0) && !sim_number(0, "fabric", 0);
}

CUDA_API cuInit(unsigned flags) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    sim_refresh();
    if (sim_driver_state() == SIM_DRIVER_NOT_LOADED) return CUDA_ERROR_NO_DEVICE;
    if (sim_driver_state() == SIM_DRIVER_MISMATCH) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    if (fabric_missing()) return CUDA_ERROR_SYSTEM_NOT_READY;
    if (initialized) return CUDA_SUCCESS;
    find_devices(getenv("CUDA_VISIBLE_DEVICES"));
    if (device_total == 0) return CUDA_ERROR_NO_DEVICE;
    initialized = 1;
    return CUDA_SUCCESS;
}

int sim_cuda_gpu(CUdevice device) {
    return device >= 0 && device < device_total ? (int)devices[device].gpu : -1;
}

/* The profile of a MIG device's GPU instance; NULL for a whole GPU. */
static const struct sim_profile *part_of(CUdevice device) {
    const struct device *found = &devices[device];
    return found->divided ? sim_instance(found->gpu, found->mig.instance, NULL) : NULL;
}

static CUresult check_device(CUdevice device) {
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    sim_refresh();
    return sim_cuda_gpu(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sim_cuda_context(int *gpu) {
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    if (current_device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    sim_refresh();
    *gpu = sim_cuda_gpu(current_device);
    return sim_number(*gpu, "lost", 0) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUDA_API cuDriverGetVersion(int *version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = SIM_CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetCount(int *count) {
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    *count = device_total;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGet(CUdevice *device, int ordinal) {
    TRY(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetName(char *name, int length, CUdevice device) {
    char text[SIM_TEXT], profile[SIM_TEXT] = "";
    TRY(check_device(device));
    sim_text(sim_cuda_gpu(device), "name", "NVIDIA H100 80GB HBM3", text);
    const struct sim_profile *part = part_of(device);
    if (part) sim_profile_name(devices[device].gpu, part, profile);
    snprintf(name, (size_t)length, "%s%s%s", text, part ? " MIG " : "", profile);
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    char text[SIM_TEXT];
    TRY(check_device(device));
    if (devices[device].divided) sim_mig_uuid(&devices[device].mig, text);
    else sim_gpu_uuid(devices[device].gpu, text);
    const char *digits = strchr(text, '-');
    for (int i = 0; i < 16 && digits; i++) {
        unsigned byte = 0;
        while (*digits == '-') digits++;
        if (sscanf(digits, "%2x", &byte) != 1) return CUDA_ERROR_UNKNOWN;
        uuid->bytes[i] = (char)byte;
        digits += 2;
    }
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

CUDA_API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    TRY(check_device(device));
    const struct sim_profile *part = part_of(device);
    *bytes = (part ? sim_profile_mib(devices[device].gpu, part)
                   : sim_number(sim_cuda_gpu(device), "memory_mib", 81559)) << 20;
    return CUDA_SUCCESS;
}

static int processors(CUdevice device) {
    const struct sim_compute_instance *mig = &devices[device].mig;
    if (!devices[device].divided) return 132;
    return (int)sim_profile_sms(mig->gpu, sim_compute(mig->gpu, mig->instance, mig->id));
}

CUDA_API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    TRY(check_device(device));
    int capability = (int)sim_number(sim_cuda_gpu(device), "compute_capability", 90);
    switch (attribute) {
    case CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = processors(device); break;
    case CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
    case CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* A context is a device's number plus one, so that no context is null. */
CUDA_API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    TRY(check_device(device));
    if (sim_number(sim_cuda_gpu(device), "lost", 0)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    *context = (CUcontext)(intptr_t)(device + 1);
    return CUDA_SUCCESS;
}

CUDA_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    TRY(check_device(device));
    if (device == current_device) current_device = -1;
    return CUDA_SUCCESS;
}

CUDA_API cuCtxSetCurrent(CUcontext context) {
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    current_device = (int)(intptr_t)context - 1;
    return CUDA_SUCCESS;
}

CUDA_API cuCtxSynchronize(void) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    TRY(sim_cuda_wait_all());
    return sim_cuda_context(&gpu);
}
