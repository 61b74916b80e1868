/* What the entry points of the simulated CUDA driver library share. */
#ifndef GPUSIM_CUDA_STATE_H
#define GPUSIM_CUDA_STATE_H

#include "../common/simconf.h"
#include "cuda_abi.h"

#define CUDA_API __attribute__((visibility("default"))) CUresult
#define UNUSED __attribute__((unused))

/* The hardware's number of a device, or -1: devices are the GPUs whose nodes can be opened. */
int sim_cuda_gpu(CUdevice device);

/* CUDA_SUCCESS when cuInit was called and the calling thread has a context of a living GPU. */
CUresult sim_cuda_context(int *gpu);

/* Returns from an entry point on any error. */
#define TRY(call)                                  \
    do {                                           \
        CUresult tried = (call);                   \
        if (tried != CUDA_SUCCESS) return tried;   \
    } while (0)

#endif
