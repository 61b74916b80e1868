/* What every entry point of the simulated NVML shares. */
#ifndef GPUSIM_NVML_STATE_H
#define GPUSIM_NVML_STATE_H

#include "../common/nvml_abi.h"
#include "../common/simconf.h"

#define NVML_API __attribute__((visibility("default"))) nvmlReturn_t
#define UNUSED __attribute__((unused))

struct nvmlDevice_st {
    unsigned gpu; /* the hardware's number, which is the device node's minor number */
};

/* Reads the configuration again; fails unless the library is initialized. */
nvmlReturn_t sim_enter(void);

/* The same, and fails for a handle that is not one or whose GPU is lost. */
nvmlReturn_t sim_enter_device(nvmlDevice_t device);

/* The handle of GPU `gpu`, which stays valid for the life of the process. */
nvmlDevice_t sim_handle(unsigned gpu);

/* A GPU's index, which is its rank among the visible ones; and the GPU of an index, or -1. */
unsigned sim_index_of(unsigned gpu);
int sim_gpu_at(unsigned index);

/* What holds the GPU's clocks down, a bit mask, and for how long any of `reasons` did since the
 * driver was loaded. */
uint64_t sim_clock_reasons(int gpu);
uint64_t sim_held_down_ns(int gpu, uint64_t reasons);

#define SIM_SLOWDOWN_CELSIUS 87
unsigned sim_temperature(int gpu);

/* Whether the machine's GPUs have somebody to be linked with. */
int sim_links_up(void);

/* Copies text into the caller's buffer of `length` bytes. */
nvmlReturn_t sim_copy(char *out, unsigned length, const char *text);

/* Returns from an entry point unless the device is usable. */
#define REQUIRE_DEVICE(device)                           \
    do {                                                 \
        nvmlReturn_t entered = sim_enter_device(device); \
        if (entered != NVML_SUCCESS) return entered;     \
    } while (0)

#endif
