/* Simulated libcuda: device memory is host memory, and the one kernel that can run, an entry point
 * named vectorAdd, is computed on the CPU, one turn per simulated thread. */
#include "state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allocation {
    char *memory;
    size_t size;
    struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static char *host(CUdeviceptr address) {
    return (char *)(uintptr_t)address;
}

/* Whether the range lies within one allocation, as the hardware's memory protection checks. */
static int owned(CUdeviceptr address, size_t size) {
    const char *start = host(address);
    int inside = 0;
    pthread_mutex_lock(&lock);
    for (const struct allocation *a = allocations; a && !inside; a = a->next)
        inside = start >= a->memory && size <= a->size && start <= a->memory + (a->size - size);
    pthread_mutex_unlock(&lock);
    return inside;
}

CUDA_API cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
    struct allocation *made = malloc(sizeof *made);
    char *memory = calloc(1, size);
    if (!made || !memory) {
        free(made);
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    *made = (struct allocation){memory, size, allocations};
    allocations = made;
    pthread_mutex_unlock(&lock);
    *address = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUDA_API cuMemFree_v2(CUdeviceptr address) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    struct allocation *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at && !found; at = &(*at)->next) {
        if ((*at)->memory != host(address)) continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    free(found->memory);
    free(found);
    return CUDA_SUCCESS;
}

CUDA_API cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!owned(target, size)) return CUDA_ERROR_INVALID_VALUE;
    memcpy(host(target), source, size);
    return CUDA_SUCCESS;
}

CUDA_API cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!owned(source, size)) return CUDA_ERROR_INVALID_VALUE;
    memcpy(target, host(source), size);
    return CUDA_SUCCESS;
}

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
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (strcmp(name, "vectorAdd") != 0 || !strstr(ptx, entry) || !strstr(ptx, "add.f32"))
        return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)(void *)module;
    return CUDA_SUCCESS;
}

static void add_vectors(const float *a, const float *b, float *sum, size_t length, int wrong) {
    for (size_t i = 0; i < length; i++) sum[i] = a[i] + b[i];
    if (wrong && length) sum[length / 2] += 1.0f; /* a fault to find: key cuda_wrong */
}

CUDA_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y UNUSED,
                        unsigned grid_z UNUSED, unsigned block_x, unsigned block_y UNUSED,
                        unsigned block_z UNUSED, unsigned shared_bytes UNUSED,
                        CUstream stream UNUSED, void **arguments, void **extra UNUSED) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!function || !arguments || grid_x == 0 || block_x == 0 || block_x > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr a = *(CUdeviceptr *)arguments[0], b = *(CUdeviceptr *)arguments[1];
    CUdeviceptr sum = *(CUdeviceptr *)arguments[2];
    size_t threads = (size_t)grid_x * block_x, length = (size_t)*(int *)arguments[3];
    if (threads < length) length = threads;
    size_t bytes = length * sizeof(float);
    if (!owned(a, bytes) || !owned(b, bytes) || !owned(sum, bytes)) return CUDA_ERROR_LAUNCH_FAILED;
    int wrong = sim_number(gpu, "cuda_wrong", 0) != 0;
    add_vectors((float *)(void *)host(a), (float *)(void *)host(b), (float *)(void *)host(sum),
                length, wrong);
    return CUDA_SUCCESS;
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
