/* Simulated libcuda: device memory is host memory, which takes no room until it is written. */
#include "state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ULL << 20)
#define RESERVED_MIB 550       /* as the simulated NVML says */
#define LINK_BYTES_S 50e9      /* each direction of the PCIe link; nvml/telemetry.c has the same */
#define MOVED_AT_ENDS 65536ULL /* bytes */

struct allocation {
    char *memory;
    size_t size;
    struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;
static size_t allocated[SIM_MAX_GPUS];

char *sim_cuda_memory(CUdeviceptr address) {
    return (char *)(uintptr_t)address;
}

int sim_cuda_owned(CUdeviceptr address, size_t size) {
    const char *start = sim_cuda_memory(address);
    int inside = 0;
    pthread_mutex_lock(&lock);
    for (const struct allocation *a = allocations; a && !inside; a = a->next)
        inside = start >= a->memory && size <= a->size && start <= a->memory + (a->size - size);
    pthread_mutex_unlock(&lock);
    return inside;
}

/* Called with the lock. */
static void count(int gpu, size_t more, size_t less) {
    allocated[gpu] += more - less;
    sim_work_tell(gpu, SIM_ALLOCATED, (unsigned)(allocated[gpu] / MIB));
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
    count(gpu, size, 0);
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
        if ((*at)->memory != sim_cuda_memory(address)) continue;
        found = *at;
        *at = found->next;
        count(gpu, 0, found->size);
        break;
    }
    pthread_mutex_unlock(&lock);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    free(found->memory);
    free(found);
    return CUDA_SUCCESS;
}

CUDA_API cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
    uint64_t mib = sim_number(gpu, "memory_mib", 81559), used = RESERVED_MIB;
    used += sim_work(gpu, SIM_ALLOCATED);
    *total = mib * MIB;
    *free_bytes = used < mib ? (mib - used) * MIB : 0;
    return CUDA_SUCCESS;
}

CUDA_API cuMemHostAlloc(void **address, size_t size, unsigned flags UNUSED) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = calloc(1, size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API cuMemFreeHost(void *address) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    free(address);
    return CUDA_SUCCESS;
}

CUDA_API cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!sim_cuda_owned(target, size)) return CUDA_ERROR_INVALID_VALUE;
    TRY(sim_cuda_wait_all());
    memcpy(sim_cuda_memory(target), source, size);
    return CUDA_SUCCESS;
}

CUDA_API cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!sim_cuda_owned(source, size)) return CUDA_ERROR_INVALID_VALUE;
    TRY(sim_cuda_wait_all());
    memcpy(target, sim_cuda_memory(source), size);
    return CUDA_SUCCESS;
}

/* Copies in a stream are there to take the time that all of their bytes take on the simulated link;
 * of large ones only both ends are moved, which the lab's CPU could not do so fast. */
static void move_ends(char *target, const char *source, size_t size) {
    size_t end = size < 2 * MOVED_AT_ENDS ? size : MOVED_AT_ENDS;
    memcpy(target, source, end);
    if (end < size) memcpy(target + size - end, source + size - end, end);
}

CUDA_API cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size,
                              CUstream stream) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!sim_cuda_owned(target, size)) return CUDA_ERROR_INVALID_VALUE;
    move_ends(sim_cuda_memory(target), source, size);
    sim_cuda_queue(gpu, stream, SIM_TO_DEVICE, (double)size / LINK_BYTES_S);
    return CUDA_SUCCESS;
}

CUDA_API cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t size, CUstream stream) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!sim_cuda_owned(source, size)) return CUDA_ERROR_INVALID_VALUE;
    move_ends(target, sim_cuda_memory(source), size);
    sim_cuda_queue(gpu, stream, SIM_TO_HOST, (double)size / LINK_BYTES_S);
    return CUDA_SUCCESS;
}
