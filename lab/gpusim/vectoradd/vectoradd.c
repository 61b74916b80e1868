/* vectorAdd: adds two vectors on every visible GPU through the CUDA driver API and checks the sum.
 *
 * Prints what NVIDIA's sample of that name prints. It needs no CUDA toolkit: libcuda.so.1, the
 * driver's own library, is opened at run time, and the kernel travels as PTX text, which the driver
 * compiles for whatever GPU it finds (compute capability 5.0 and later). So it runs on a real GPU
 * and on a simulated one. With --verbose it also names each device and its UUID.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda/cuda_abi.h"

#define BLOCK 256
#define DEFAULT_ELEMENTS 50000

static const char ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry vectorAdd(.param .u64 pA, .param .u64 pB, .param .u64 pC, .param .u32 pN)\n"
    "{\n"
    "  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;\n"
    "  ld.param.u64 %rd1, [pA]; ld.param.u64 %rd2, [pB];\n"
    "  ld.param.u64 %rd3, [pC]; ld.param.u32 %r1, [pN];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n" /* i = block * block size + thread */
    "  setp.ge.s32 %p, %r5, %r1;\n"
    "  @%p bra DONE;\n"
    "  cvta.to.global.u64 %rd4, %rd1; cvta.to.global.u64 %rd5, %rd2;\n"
    "  cvta.to.global.u64 %rd6, %rd3; mul.wide.s32 %rd7, %r5, 4;\n"
    "  add.s64 %rd8, %rd4, %rd7; add.s64 %rd9, %rd5, %rd7; add.s64 %rd10, %rd6, %rd7;\n"
    "  ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd9];\n"
    "  add.f32 %f3, %f1, %f2;\n" /* C[i] = A[i] + B[i] */
    "  st.global.f32 [%rd10], %f3;\n"
    "DONE: ret;\n"
    "}\n";

#define FUNCTIONS(X)                                                                       \
    X(cuInit, (unsigned))                                                                  \
    X(cuDeviceGetCount, (int *))                                                           \
    X(cuDeviceGet, (CUdevice *, int))                                                      \
    X(cuDeviceGetName, (char *, int, CUdevice))                                            \
    X(cuDeviceGetUuid, (CUuuid *, CUdevice))                                               \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                   \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                            \
    X(cuCtxSetCurrent, (CUcontext))                                                        \
    X(cuCtxSynchronize, (void))                                                            \
    X(cuModuleLoadData, (CUmodule *, const void *))                                        \
    X(cuModuleUnload, (CUmodule))                                                          \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                         \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                              \
    X(cuMemFree_v2, (CUdeviceptr))                                                         \
    X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                      \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, CUstream, void **, void **))                              \
    X(cuGetErrorName, (CUresult, const char **))
#define DECLARE(name, parameters) static CUresult(*name) parameters;
FUNCTIONS(DECLARE)

static void fail(const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "Failed: %s: %s!\nTest FAILED\n", what, why);
    exit(EXIT_FAILURE);
}

static void check(CUresult result, const char *what) {
    const char *name = "unknown error";
    if (result == CUDA_SUCCESS) return;
    cuGetErrorName(result, &name);
    fail(what, name);
}
#define CHECK(call) check((call), #call)

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) fail("open the CUDA driver library", dlerror());
#define FIND(name, parameters) \
    if (!(*(void **)&name = dlsym(library, #name))) fail("find " #name, dlerror());
    FUNCTIONS(FIND)
}

static void print_device(CUdevice device, int ordinal) {
    char name[128];
    CUuuid uuid;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetUuid(&uuid, device));
    printf("GPU %d: %s (UUID: GPU", ordinal, name);
    for (int i = 0; i < 16; i++)
        printf("%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
               (unsigned char)uuid.bytes[i]);
    printf(")\n");
}

static float *random_vector(int length) {
    float *vector = malloc((size_t)length * sizeof *vector);
    if (!vector) fail("allocate host vectors", "out of memory");
    for (int i = 0; i < length; i++) vector[i] = (float)rand() / (float)RAND_MAX;
    return vector;
}

/* Computes sum = a + b on the current context's device. */
static void add_on_device(const float *a, const float *b, float *sum, int length) {
    size_t bytes = (size_t)length * sizeof(float);
    unsigned grid = ((unsigned)length + BLOCK - 1) / BLOCK;
    CUdeviceptr on_device[3];
    CUmodule module;
    CUfunction function;
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "vectorAdd"));
    for (int i = 0; i < 3; i++) CHECK(cuMemAlloc_v2(&on_device[i], bytes));
    printf("Copy input data from the host memory to the CUDA device\n");
    CHECK(cuMemcpyHtoD_v2(on_device[0], a, bytes));
    CHECK(cuMemcpyHtoD_v2(on_device[1], b, bytes));
    printf("CUDA kernel launch with %u blocks of %d threads\n", grid, BLOCK);
    void *arguments[] = {&on_device[0], &on_device[1], &on_device[2], &length};
    CHECK(cuLaunchKernel(function, grid, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuCtxSynchronize());
    printf("Copy output data from the CUDA device to the host memory\n");
    CHECK(cuMemcpyDtoH_v2(sum, on_device[2], bytes));
    for (int i = 0; i < 3; i++) CHECK(cuMemFree_v2(on_device[i]));
    CHECK(cuModuleUnload(module));
}

static void test_device(int ordinal, int length, int verbose) {
    CUdevice device;
    CUcontext context;
    CHECK(cuDeviceGet(&device, ordinal));
    if (verbose) print_device(device, ordinal);
    printf("[Vector addition of %d elements]\n", length);
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    float *a = random_vector(length), *b = random_vector(length), *sum = random_vector(length);
    add_on_device(a, b, sum, length);
    for (int i = 0; i < length; i++) {
        if (fabsf(a[i] + b[i] - sum[i]) <= 1e-5f) continue;
        fprintf(stderr, "Result verification failed at element %d!\nTest FAILED\n", i);
        exit(EXIT_FAILURE);
    }
    free(a);
    free(b);
    free(sum);
    CHECK(cuDevicePrimaryCtxRelease_v2(device));
}

int main(int argc, char **argv) {
    int verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
    int length = argc > 1 + verbose ? atoi(argv[1 + verbose]) : DEFAULT_ELEMENTS, count = 0;
    if (length < 1) {
        fprintf(stderr, "usage: vectorAdd [--verbose] [elements]\n");
        return 2;
    }
    open_driver();
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&count));
    if (count == 0) fail("find a GPU", "no CUDA-capable device is visible");
    for (int ordinal = 0; ordinal < count; ordinal++) test_device(ordinal, length, verbose);
    printf("Test PASSED\nDone\n");
    return EXIT_SUCCESS;
}
