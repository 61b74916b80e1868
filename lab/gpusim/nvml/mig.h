/* GPUs that are divided by MIG, for the entry points of the simulated NVML. */
#ifndef GPUSIM_NVML_MIG_H
#define GPUSIM_NVML_MIG_H

#include "state.h"

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

/* Compute slices of a compute instance, 0 where there is none. */
unsigned sim_compute(unsigned gpu, unsigned instance, unsigned id);

/* Make and end them; how many more of a profile fit. */
nvmlReturn_t sim_make_instance(unsigned gpu, const struct sim_profile *profile, unsigned *id);
nvmlReturn_t sim_end_instance(unsigned gpu, unsigned id);
nvmlReturn_t sim_make_compute(unsigned gpu, unsigned instance, unsigned slices, unsigned *id);
nvmlReturn_t sim_end_compute(unsigned gpu, unsigned instance, unsigned id);
unsigned sim_room_for(unsigned gpu, const struct sim_profile *profile);

/* The handle of a MIG device; the one that has a UUID; and what a handle is about, which fails for
 * other handles and for devices that are gone. */
nvmlDevice_t sim_mig_handle(unsigned gpu, unsigned instance, unsigned id);
nvmlReturn_t sim_mig_find(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t sim_mig_enter(nvmlDevice_t device, struct sim_compute_instance *found);
void sim_mig_uuid(const struct sim_compute_instance *mig, char out[SIM_TEXT]);

#endif
