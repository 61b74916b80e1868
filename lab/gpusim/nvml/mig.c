/* Simulated NVML: the state of GPUs that MIG divides.
 *
 * Slices, placements and numbers of instances: NVIDIA's MIG User Guide, "Supported MIG Profiles",
 * of A100 80GB, H100 80GB, H200 and B200, which differ in memory and SMs only; ids of profiles:
 * NVIDIA/k8s-test-infra@c0148fc, pkg/gpu/mocknvml/configs/mock-nvml-config-{h100,b200}.mig.yaml.
 */
#include "mig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define B200 0x2901

static const struct sim_profile profiles[] = {
    {0, 1, 1, 7, {0, 1, 2, 3, 4, 5, 6}, 7, 7, ""},
    {7, 1, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 7, 7, "+me"},
    {9, 1, 2, 4, {0, 2, 4, 6}, 4, 7, ""},
    {1, 2, 2, 3, {0, 2, 4}, 3, 3, ""},
    {2, 3, 4, 2, {0, 4}, 2, 1, ""},
    {3, 4, 4, 1, {0}, 1, 1, ""},
    {4, 7, 8, 1, {0}, 1, 0, ""},
};
#define PROFILES (sizeof profiles / sizeof profiles[0])

/* PCI device -> SMs of a compute slice. */
static const unsigned cards[][2] = {
    {0x20b2, 14}, {0x20b5, 14}, {0x2330, 16}, {0x2331, 16}, {0x2335, 16}, {B200, 18},
};

static unsigned model(unsigned gpu) {
    return (unsigned)sim_number((int)gpu, "pci_device_id", 0x2330);
}

unsigned sim_profile_sms(unsigned gpu, unsigned slices) {
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++)
        if (cards[i][0] == model(gpu)) return cards[i][1] * slices;
    return 0;
}

int sim_mig_capable(unsigned gpu) {
    return sim_number((int)gpu, "mig", 0) && sim_profile_sms(gpu, 1);
}

int sim_mig_enabled(unsigned gpu) {
    return sim_mig_capable(gpu) && sim_number((int)gpu, "mig_mode", 0);
}

const struct sim_profile *sim_profile_of(unsigned kind) {
    for (size_t i = 0; i < PROFILES; i++)
        if (profiles[i].kind == kind) return &profiles[i];
    return NULL;
}

/* Ampere and Hopper number them by their place in a fixed list, Blackwell by their kind. */
unsigned sim_profile_id(unsigned gpu, const struct sim_profile *profile) {
    static const unsigned ids[] = {19, 14, 9, 5, 0, 0, 0, 20, 0, 15};
    return model(gpu) == B200 ? profile->kind : ids[profile->kind];
}

const struct sim_profile *sim_profile_with_id(unsigned gpu, unsigned id) {
    for (size_t i = 0; i < PROFILES; i++)
        if (sim_profile_id(gpu, &profiles[i]) == id) return &profiles[i];
    return NULL;
}

uint64_t sim_profile_mib(unsigned gpu, const struct sim_profile *profile) {
    return sim_number((int)gpu, "memory_mib", 81559) * profile->memory / SIM_MEMORY_SLICES;
}

/* Eighths of the card's memory in whole GiB, rounded half up (go-nvlib, getMigMemorySizeGB). */
void sim_profile_name(unsigned gpu, const struct sim_profile *profile, char out[SIM_TEXT]) {
    unsigned whole = (unsigned)((sim_number((int)gpu, "memory_mib", 81559) + 1023) / 1024);
    unsigned gib = (2 * whole * profile->memory + SIM_MEMORY_SLICES) / (2 * SIM_MEMORY_SLICES);
    snprintf(out, SIM_TEXT, "%ug.%ugb%s", profile->compute, gib, profile->suffix);
}

/* What is kept of an instance: 1 + 16 x profile + first memory slice; 0 for none. */
const struct sim_profile *sim_instance(unsigned gpu, unsigned id, unsigned *start) {
    char key[40];
    snprintf(key, sizeof key, "gi_%u", id);
    uint64_t kept = id < SIM_GPU_INSTANCES && sim_mig_enabled(gpu) ? sim_number((int)gpu, key, 0) : 0;
    if (!kept || (kept - 1) / 16 >= PROFILES) return NULL;
    if (start) *start = (kept - 1) % 16;
    return &profiles[(kept - 1) / 16];
}

unsigned sim_compute(unsigned gpu, unsigned instance, unsigned id) {
    char key[40];
    if (id >= SIM_COMPUTE_INSTANCES || !sim_instance(gpu, instance, NULL)) return 0;
    snprintf(key, sizeof key, "ci_%u_%u", instance, id);
    return (unsigned)sim_number((int)gpu, key, 0);
}

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
    return keep(gpu, key, 1 + 16 * (uint64_t)(profile - profiles) + (unsigned)start);
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
