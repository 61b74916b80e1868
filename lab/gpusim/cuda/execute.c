/* Simulated libcuda: modules and launches. Of kernels see kernels.c. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only PTX text is understood, and only far enough to know a module from anything else. */
CUDA_API cuModuleLoadData(CUmodule *module, const void *image) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    if (strncmp(image, ".version", strlen(".version")) != 0) return CUDA_ERROR_INVALID_IMAGE;
    if (!strstr(image, ".target") || !strstr(image, ".entry")) return CUDA_ERROR_INVALID_PTX;
    *module = (CUmodule)(void *)strdup(image);
    return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API cuModuleUnload(CUmodule module) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    free(module);
    return CUDA_SUCCESS;
}

CUDA_API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    int gpu;
    char entry[128];
    TRY(sim_cuda_context(&gpu));
    const char *ptx = (const char *)module;
    const struct sim_kernel *kernel = sim_cuda_kernel(name);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!kernel || !strstr(ptx, entry) || !strstr(ptx, kernel->instruction))
        return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)(uintptr_t)kernel;
    return CUDA_SUCCESS;
}

CUDA_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y UNUSED,
                        unsigned grid_z UNUSED, unsigned block_x, unsigned block_y UNUSED,
                        unsigned block_z UNUSED, unsigned shared_bytes UNUSED, CUstream stream,
                        void **arguments, void **extra UNUSED) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!function || !arguments || grid_x == 0 || block_x == 0 || block_x > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sim_kernel *kernel = (const void *)function;
    return kernel->run(gpu, stream, (size_t)grid_x * block_x, arguments);
}

CUDA_API cuGetErrorName(CUresult error, const char **name) {
    switch (error) {
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case CUDA_ERROR_DEVICE_UNAVAILABLE: *name = "CUDA_ERROR_DEVICE_UNAVAILABLE"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
    case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CUDA_ERROR_INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    case CUDA_ERROR_SYSTEM_NOT_READY: *name = "CUDA_ERROR_SYSTEM_NOT_READY"; break;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; break;
    default: *name = "CUDA_ERROR_UNKNOWN"; break;
    }
    return CUDA_SUCCESS;
}
