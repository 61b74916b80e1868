/* GPUs that are divided by MIG, for the entry points of the simulated NVML. */
#ifndef GPUSIM_NVML_MIG_H
#define GPUSIM_NVML_MIG_H

#include "../common/simmig.h"
#include "state.h"

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

#endif
