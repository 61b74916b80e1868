/* Simulated GPU state: the driver, the GPUs' identity and load, and counters. See simconf.h. */
#include "simconf.h"
#include "simwork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WAVE_SECONDS 120.0
#define WAVE_LAG 15.0 /* each GPU is this many seconds behind the one before */

int sim_device_node(const char *name) {
    const char *folder = getenv("SIM_GPU_DEV");
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/dev", name);
    return stat(path, &status) == 0;
}

enum sim_driver sim_driver_state(void) {
    char loaded[SIM_TEXT];
    sim_text(SIM_ALL_GPUS, "driver_version", "", loaded);
    /* A configuration left from before a reboot does not count: the nodes come with loading. */
    if (!*loaded || !sim_device_node("nvidiactl")) return SIM_DRIVER_NOT_LOADED;
    return strcmp(loaded, SIM_DRIVER_VERSION) == 0 ? SIM_DRIVER_READY : SIM_DRIVER_MISMATCH;
}

unsigned sim_gpu_count(void) {
    uint64_t count = sim_number(SIM_ALL_GPUS, "count", 0);
    return count > SIM_MAX_GPUS ? SIM_MAX_GPUS : (unsigned)count;
}

int sim_gpu_visible(unsigned gpu) {
    char name[32];
    snprintf(name, sizeof name, "nvidia%u", gpu);
    return sim_device_node(name);
}

void sim_gpu_uuid(unsigned gpu, char out[SIM_TEXT]) {
    char made[SIM_TEXT];
    unsigned seed = (unsigned)sim_number(SIM_ALL_GPUS, "uuid_seed", 0);
    snprintf(made, sizeof made, "GPU-%08x-5157-4c6c-8abc-%012x", seed, gpu);
    sim_text((int)gpu, "uuid", made, out);
}

unsigned sim_gpu_bus(unsigned gpu) {
    return 0x10 + 0x0c * gpu;
}

/* Not libm's: containers that hold these libraries need not have it. */
static double whole(double number) {
    return (double)(uint64_t)number;
}

/* The wave rises and falls between 0 and 1; this is its integral from 0 to `t`. */
static double wave_area(double t) {
    double at = t - whole(t / WAVE_SECONDS) * WAVE_SECONDS, half = WAVE_SECONDS / 2, left = WAVE_SECONDS - at;
    double part = at <= half ? at * at / WAVE_SECONDS : half - left * left / WAVE_SECONDS;
    return whole(t / WAVE_SECONDS) * half + part;
}

static double limited(double percent) {
    return percent > 100 ? 100 : percent;
}

unsigned sim_gpu_set_load(unsigned gpu) {
    double now = whole(sim_now()) + WAVE_LAG * gpu, half = WAVE_SECONDS / 2;
    double at = now - whole(now / WAVE_SECONDS) * WAVE_SECONDS;
    double share = at < half ? at / half : (WAVE_SECONDS - at) / half;
    unsigned peak = (unsigned)sim_number((int)gpu, "util_max", 0);
    unsigned load = (unsigned)sim_number((int)gpu, "util", (uint64_t)(share * peak));
    return (unsigned)limited(load);
}

unsigned sim_gpu_load(unsigned gpu) {
    unsigned set = sim_gpu_set_load(gpu);
    unsigned computed = sim_work((int)gpu, SIM_COMPUTE) + sim_work((int)gpu, SIM_COPY);
    return computed > set ? (unsigned)limited(computed) : set;
}

double sim_gpu_mean_load(int gpu, double from, double until) {
    double peak = (double)sim_number(gpu, "util_max", 0), lag = WAVE_LAG * gpu;
    double mean = (wave_area(until + lag) - wave_area(from + lag)) / (until - from) * peak;
    return limited((double)sim_number(gpu, "util", (uint64_t)mean));
}

static double grown(int gpu, double from, double until, const void *rate_key) {
    return (until - from) / 60 * (double)sim_number(gpu, rate_key, 0);
}

uint64_t sim_count(int gpu, const char *key) {
    char rate_key[64];
    snprintf(rate_key, sizeof rate_key, "%s_rate", key);
    double more = sim_sum(gpu, sim_set_at(gpu, key), grown, rate_key);
    return sim_number(gpu, key, 0) + (uint64_t)more;
}
