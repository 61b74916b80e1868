/* Simulated libcuda: the kernels that can run, computed on the CPU. All others are not found.
 *
 * vectorAdd is computed whole and takes no time. Those of `gpuboot load` take the time that their
 * operations or bytes take at the simulated GPU's speed: of the arithmetic, which is the same for all
 * threads, one thread is computed, and of a copy both ends. */
#include "state.h"

#include <string.h>

#define FLOP_S 60e12        /* single precision */
#define DRAM_BYTES_S 2.8e12 /* read and written */
#define FLOP_OF_STEP 64.0
#define PIECE 16 /* bytes */
#define COPIED_AT_ENDS 65536ULL

static CUresult add_vectors(int gpu, CUstream stream UNUSED, size_t threads, void **arguments) {
    CUdeviceptr address[3];
    for (int i = 0; i < 3; i++) address[i] = *(CUdeviceptr *)arguments[i];
    size_t length = (size_t)*(int *)arguments[3];
    if (threads < length) length = threads;
    for (int i = 0; i < 3; i++)
        if (!sim_cuda_owned(address[i], length * sizeof(float))) return CUDA_ERROR_LAUNCH_FAILED;
    const float *a = (float *)(void *)sim_cuda_memory(address[0]);
    const float *b = (float *)(void *)sim_cuda_memory(address[1]);
    float *sum = (float *)(void *)sim_cuda_memory(address[2]);
    for (size_t i = 0; i < length; i++) sum[i] = a[i] + b[i];
    if (sim_number(gpu, "cuda_wrong", 0) && length) sum[length / 2] += 1.0f; /* a fault to find */
    return CUDA_SUCCESS;
}

/* What one thread of gpuboot_fma leaves. The same arguments come again and again. */
static float multiply_add(uint32_t steps, float a, float b) {
    static __thread uint32_t last_steps;
    static __thread float last_a, last_b, last_result;
    if (steps == last_steps && a == last_a && b == last_b) return last_result;
    float sum = 0;
    for (int start = 0; start < 4; start++) {
        float x = (float)start;
        for (uint64_t i = 0; i < 8 * (uint64_t)steps; i++) x = (float)((double)x * a + b);
        sum += x;
    }
    last_steps = steps;
    last_a = a;
    last_b = b;
    return last_result = sum;
}

static CUresult compute(int gpu, CUstream stream, size_t threads, void **arguments) {
    CUdeviceptr out = *(CUdeviceptr *)arguments[0];
    uint32_t steps = *(uint32_t *)arguments[1];
    if (!sim_cuda_owned(out, threads * sizeof(float))) return CUDA_ERROR_LAUNCH_FAILED;
    float result = multiply_add(steps, *(float *)arguments[2], *(float *)arguments[3]);
    float *results = (float *)(void *)sim_cuda_memory(out);
    for (size_t i = 0; i < threads; i++) results[i] = result;
    if (sim_number(gpu, "cuda_wrong", 0)) results[0] += 1.0f;
    double operations = FLOP_OF_STEP * (double)steps * (double)threads;
    sim_cuda_queue(gpu, stream, SIM_COMPUTE, operations / FLOP_S);
    return CUDA_SUCCESS;
}

static CUresult copy(int gpu, CUstream stream, size_t threads UNUSED, void **arguments) {
    CUdeviceptr to = *(CUdeviceptr *)arguments[0], from = *(CUdeviceptr *)arguments[1];
    size_t size = PIECE * (size_t)*(uint64_t *)arguments[2];
    if (!sim_cuda_owned(to, size) || !sim_cuda_owned(from, size)) return CUDA_ERROR_LAUNCH_FAILED;
    size_t end = size < 2 * COPIED_AT_ENDS ? size : COPIED_AT_ENDS;
    char *target = sim_cuda_memory(to), *source = sim_cuda_memory(from);
    memcpy(target, source, end);
    memcpy(target + size - end, source + size - end, end);
    if (size && sim_number(gpu, "cuda_wrong", 0)) target[0] ^= 1;
    sim_cuda_queue(gpu, stream, SIM_COPY, 2.0 * (double)size / DRAM_BYTES_S);
    return CUDA_SUCCESS;
}

const struct sim_kernel *sim_cuda_kernel(const char *name) {
    static const struct sim_kernel kernels[] = {
        {"vectorAdd", "add.f32", add_vectors},
        {"gpuboot_fma", "fma.rn.f32", compute},
        {"gpuboot_copy", "st.global.v4.u32", copy},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
    return NULL;
}
