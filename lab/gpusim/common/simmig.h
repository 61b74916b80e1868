/* GPUs that are divided by MIG, for every simulated driver library. */
#ifndef SIMMIG_H
#define SIMMIG_H

#include "simconf.h"

#define SIM_GPU_INSTANCES 14 /* ids 0 to 13, as on cards with 7 compute slices */
#define SIM_COMPUTE_INSTANCES 7
#define SIM_MEMORY_SLICES 8

/* A profile of GPU instances on cards with 7 compute and 8 memory slices. */
struct sim_profile {
    unsigned kind;                       /* NVML_GPU_INSTANCE_PROFILE_… */
    unsigned compute, memory, instances; /* slices, and how many a card can have */
    unsigned starts[7], start_count;
    unsigned first_id; /* of its instances */
    const char *suffix;
};

struct sim_gpu_instance {
    unsigned gpu, id;
};

struct sim_compute_instance {
    unsigned gpu, instance, id;
};

/* The profile of a kind, or NULL; and of an id, which differs by card. */
const struct sim_profile *sim_profile_of(unsigned kind);
const struct sim_profile *sim_profile_with_id(unsigned gpu, unsigned id);
unsigned sim_profile_id(unsigned gpu, const struct sim_profile *profile);
unsigned sim_profile_sms(unsigned gpu, unsigned slices);
uint64_t sim_profile_mib(unsigned gpu, const struct sim_profile *profile);
void sim_profile_name(unsigned gpu, const struct sim_profile *profile, char out[SIM_TEXT]);

/* Whether the card can be divided (the hardware says "mig = 1"), and whether it is. */
int sim_mig_capable(unsigned gpu);
int sim_mig_enabled(unsigned gpu);

/* The profile of a GPU instance and its first memory slice; NULL where there is none. */
const struct sim_profile *sim_instance(unsigned gpu, unsigned id, unsigned *start);

/* What is kept of such an instance, above 0. */
uint64_t sim_instance_value(const struct sim_profile *profile, unsigned start);

/* Compute slices of a compute instance, 0 where there is none. */
unsigned sim_compute(unsigned gpu, unsigned instance, unsigned id);

void sim_mig_uuid(const struct sim_compute_instance *mig, char out[SIM_TEXT]);

/* Whether this process was given the capabilities of a MIG device and its GPU instance, as a
 * container is by device nodes, or the one that shows all. */
#define SIM_MONITOR_MINOR 2
int sim_mig_visible(const struct sim_compute_instance *mig);

/* The first MIG device of a GPU that this process sees, from the given one on; 0 when none is left. */
int sim_mig_next(struct sim_compute_instance *mig);

#endif
