/* Simulated libcuda: initialization, devices and contexts. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int gpus[SIM_MAX_GPUS], gpu_total, initialized;
static __thread int current_device = -1;

static int can_open(unsigned gpu) {
    const char *folder = getenv("SIM_GPU_DEV");
    char path[256];
    snprintf(path, sizeof path, "%s/nvidia%u", folder ? folder : "/dev", gpu);
    return access(path, R_OK | W_OK) == 0;
}

/* The GPU that one entry of CUDA_VISIBLE_DEVICES names, by UUID (or its beginning) or by its number
 * among those that can be opened; -1 for none. */
static int named_gpu(const char *entry, size_t length) {
    char uuid[SIM_TEXT], *end;
    long number = strtol(entry, &end, 10);
    int by_number = end == entry + length && end != entry, seen = 0;
    for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (!can_open(gpu)) continue;
        sim_gpu_uuid(gpu, uuid);
        if (by_number ? seen == number : length > 4 && !strncmp(uuid, entry, length)) return (int)gpu;
        seen++;
    }
    return -1;
}

/* CUDA shows the GPUs that the variable names, in its order, up to the first that is none. */
static void find_gpus(const char *visible) {
    gpu_total = 0;
    if (!visible) {
        for (unsigned gpu = 0; gpu < sim_gpu_count(); gpu++)
            if (can_open(gpu)) gpus[gpu_total++] = (int)gpu;
        return;
    }
    while (*visible && gpu_total < SIM_MAX_GPUS) {
        size_t length = strcspn(visible, ",");
        int gpu = named_gpu(visible, length);
        if (gpu < 0) return;
        gpus[gpu_total++] = gpu;
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
    find_gpus(getenv("CUDA_VISIBLE_DEVICES"));
    if (gpu_total == 0) return CUDA_ERROR_NO_DEVICE;
    initialized = 1;
    return CUDA_SUCCESS;
}

int sim_cuda_gpu(CUdevice device) {
    return device >= 0 && device < gpu_total ? gpus[device] : -1;
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
    *count = gpu_total;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGet(CUdevice *device, int ordinal) {
    TRY(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetName(char *name, int length, CUdevice device) {
    char text[SIM_TEXT];
    TRY(check_device(device));
    sim_text(sim_cuda_gpu(device), "name", "NVIDIA H100 80GB HBM3", text);
    snprintf(name, (size_t)length, "%s", text);
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    char text[SIM_TEXT];
    TRY(check_device(device));
    sim_gpu_uuid((unsigned)sim_cuda_gpu(device), text);
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
    *bytes = (size_t)sim_number(sim_cuda_gpu(device), "memory_mib", 81559) << 20;
    return CUDA_SUCCESS;
}

CUDA_API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    TRY(check_device(device));
    int capability = (int)sim_number(sim_cuda_gpu(device), "compute_capability", 90);
    switch (attribute) {
    case CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
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
