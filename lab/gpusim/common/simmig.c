/* MIG: what a card can be divided into, and what it is divided into now. See simmig.h.
 *
 * Slices, placements and numbers of instances: NVIDIA's MIG User Guide, "Supported MIG Profiles",
 * of A100 80GB, H100 80GB, H200 and B200, which differ in memory and SMs only; ids of profiles:
 * NVIDIA/k8s-test-infra@c0148fc, pkg/gpu/mocknvml/configs/mock-nvml-config-{h100,b200}.mig.yaml.
 */
#include "simmig.h"

#include <stdio.h>

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

uint64_t sim_instance_value(const struct sim_profile *profile, unsigned start) {
    return 1 + 16 * (uint64_t)(profile - profiles) + start;
}

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

void sim_mig_uuid(const struct sim_compute_instance *mig, char out[SIM_TEXT]) {
    unsigned seed = (unsigned)sim_number(SIM_ALL_GPUS, "uuid_seed", 0);
    snprintf(out, SIM_TEXT, "MIG-%08x-5157-5c6c-8abc-%04x%04x%04x", seed, mig->gpu, mig->instance,
             mig->id);
}

/* By the minor numbers that driver/load gives them. */
static int may_use(unsigned minor) {
    char name[40];
    snprintf(name, sizeof name, "nvidia-caps/nvidia-cap%u", minor);
    return sim_device_node(name);
}

int sim_mig_visible(const struct sim_compute_instance *mig) {
    unsigned instance = 3 + 9 * (15 * mig->gpu + mig->instance);
    return may_use(SIM_MONITOR_MINOR) || (may_use(instance) && may_use(instance + 1 + mig->id));
}

int sim_mig_next(struct sim_compute_instance *mig) {
    for (; mig->instance < SIM_GPU_INSTANCES; mig->instance++, mig->id = 0)
        for (; mig->id < SIM_COMPUTE_INSTANCES; mig->id++)
            if (sim_compute(mig->gpu, mig->instance, mig->id) && sim_mig_visible(mig)) return 1;
    return 0;
}
