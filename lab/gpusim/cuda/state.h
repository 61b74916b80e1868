/* What the entry points of the simulated CUDA driver library share. */
#ifndef GPUSIM_CUDA_STATE_H
#define GPUSIM_CUDA_STATE_H

#include "../common/simconf.h"
#include "../common/simwork.h"
#include "cuda_abi.h"

#define CUDA_API __attribute__((visibility("default"))) CUresult
#define UNUSED __attribute__((unused))

/* The hardware's number of a device, or -1: devices are the GPUs whose nodes can be opened. */
int sim_cuda_gpu(CUdevice device);

/* CUDA_SUCCESS when cuInit was called and the calling thread has a context of a living GPU. */
CUresult sim_cuda_context(int *gpu);

/* Whether the range lies within one allocation, as the hardware's memory protection checks. */
int sim_cuda_owned(CUdeviceptr address, size_t size);

/* The host memory that stands for device memory. */
char *sim_cuda_memory(CUdeviceptr address);

/* A kernel that can run: what computes it on the CPU, for so many threads. */
struct sim_kernel {
    const char *name;
    const char *instruction; /* that its PTX must have, so that another of this name is refused */
    CUresult (*run)(int gpu, CUstream stream, size_t threads, void **arguments);
};
const struct sim_kernel *sim_cuda_kernel(const char *name);

/* A queue of work; the null stream is one as well. */
void sim_cuda_queue(int gpu, CUstream stream, enum sim_work what, double seconds);

/* Waits until all that was queued has taken its time. */
CUresult sim_cuda_wait_all(void);

/* Returns from an entry point on any error. */
#define TRY(call)                                  \
    do {                                           \
        CUresult tried = (call);                   \
        if (tried != CUDA_SUCCESS) return tried;   \
    } while (0)

#endif
