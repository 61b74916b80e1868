/* Simulated NVML: how GPUs are divided by MIG, and made whole again. */
#include "mig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The driver's files of instances: folders that exist as long as the instance does. */
static void show_instance(unsigned gpu, const char *instance, int exists) {
    const char *proc = getenv("SIM_GPU_PROC");
    char path[256], access[272];
    size_t length = (size_t)snprintf(path, sizeof path, "%s/nvidia/capabilities",
                                     proc ? proc : "/proc/driver");
    const char *parts[] = {NULL, "/mig", instance};
    char card[16];
    snprintf(card, sizeof card, "/gpu%u", gpu);
    parts[0] = card;
    for (unsigned i = 0; i < 3; i++) {
        length += (size_t)snprintf(path + length, sizeof path - length, "%s", parts[i]);
        if (exists) mkdir(path, 0555); /* not where no driver made the folder that it is in */
    }
    snprintf(access, sizeof access, "%s/access", path);
    int fd = exists ? open(access, O_WRONLY | O_CREAT | O_CLOEXEC, 0444) : -1;
    if (fd >= 0) close(fd);
    if (!exists && (unlink(access) == 0 || errno == ENOENT)) rmdir(path);
}

static nvmlReturn_t keep(unsigned gpu, const char *key, uint64_t value) {
    if (sim_append((int)gpu, key, value) != 0)
        return errno == EACCES || errno == EROFS ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
    sim_refresh();
    return NVML_SUCCESS;
}

/* The memory slices that are taken, a bit mask, and the compute slices that are left. */
static unsigned taken(unsigned gpu, unsigned *compute_left) {
    unsigned mask = 0, used = 0, start = 0;
    for (unsigned id = 0; id < SIM_GPU_INSTANCES; id++) {
        const struct sim_profile *profile = sim_instance(gpu, id, &start);
        if (!profile) continue;
        mask |= ((1u << profile->memory) - 1) << start;
        used += profile->compute;
    }
    *compute_left = used < 7 ? 7 - used : 0;
    return mask;
}

static unsigned count_of(unsigned gpu, const struct sim_profile *profile) {
    unsigned count = 0;
    for (unsigned id = 0; id < SIM_GPU_INSTANCES; id++)
        count += sim_instance(gpu, id, NULL) == profile;
    return count;
}

/* The place of a new instance, the last that is free as the driver takes them; -1 for none. */
static int free_start(const struct sim_profile *profile, unsigned mask) {
    for (unsigned i = profile->start_count; i-- > 0;)
        if (!(mask & ((1u << profile->memory) - 1) << profile->starts[i]))
            return (int)profile->starts[i];
    return -1;
}

unsigned sim_room_for(unsigned gpu, const struct sim_profile *profile) {
    unsigned left, mask = taken(gpu, &left), room = 0, most = profile->instances;
    unsigned have = count_of(gpu, profile);
    for (int start; left >= profile->compute && (start = free_start(profile, mask)) >= 0; room++) {
        mask |= ((1u << profile->memory) - 1) << start;
        left -= profile->compute;
    }
    return have + room > most ? most - have : room;
}

nvmlReturn_t sim_make_instance(unsigned gpu, const struct sim_profile *profile, unsigned *id) {
    unsigned left, mask = taken(gpu, &left);
    char key[40];
    int start = free_start(profile, mask);
    if (!sim_room_for(gpu, profile) || start < 0) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    for (*id = profile->first_id; *id < SIM_GPU_INSTANCES && sim_instance(gpu, *id, NULL);) ++*id;
    if (*id == SIM_GPU_INSTANCES) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    snprintf(key, sizeof key, "/gi%u", *id);
    show_instance(gpu, key, 1);
    snprintf(key, sizeof key, "gi_%u", *id);
    return keep(gpu, key, sim_instance_value(profile, (unsigned)start));
}

nvmlReturn_t sim_end_instance(unsigned gpu, unsigned id) {
    char key[40];
    for (unsigned ci = 0; ci < SIM_COMPUTE_INSTANCES; ci++)
        if (sim_compute(gpu, id, ci)) return NVML_ERROR_IN_USE;
    snprintf(key, sizeof key, "/gi%u", id);
    show_instance(gpu, key, 0);
    snprintf(key, sizeof key, "gi_%u", id);
    return keep(gpu, key, 0);
}

nvmlReturn_t sim_make_compute(unsigned gpu, unsigned instance, unsigned slices, unsigned *id) {
    const struct sim_profile *profile = sim_instance(gpu, instance, NULL);
    unsigned used = 0, free_id = SIM_COMPUTE_INSTANCES;
    char key[40];
    for (unsigned ci = SIM_COMPUTE_INSTANCES; ci-- > 0;) {
        used += sim_compute(gpu, instance, ci);
        if (!sim_compute(gpu, instance, ci)) free_id = ci;
    }
    if (!profile || used + slices > profile->compute || free_id == SIM_COMPUTE_INSTANCES)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    *id = free_id;
    snprintf(key, sizeof key, "/gi%u/ci%u", instance, free_id);
    show_instance(gpu, key, 1);
    snprintf(key, sizeof key, "ci_%u_%u", instance, free_id);
    return keep(gpu, key, slices);
}

nvmlReturn_t sim_end_compute(unsigned gpu, unsigned instance, unsigned id) {
    char key[40];
    snprintf(key, sizeof key, "/gi%u/ci%u", instance, id);
    show_instance(gpu, key, 0);
    snprintf(key, sizeof key, "ci_%u_%u", instance, id);
    return keep(gpu, key, 0);
}
