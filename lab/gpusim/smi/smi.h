/* The simulated nvidia-smi: what its parts share. */
#ifndef GPUSIM_SMI_H
#define GPUSIM_SMI_H

#include <stddef.h>

#include "../common/nvml_api.h"
#include "../common/simconf.h"

/* Exit codes as in the nvidia-smi manual page; failed NVML calls exit with NVML's number. */
#define SMI_BAD_ARGUMENT 2
#define SMI_VALUE 128

struct gpu {
    unsigned index;
    nvmlDevice_t device;
    nvmlReturn_t state; /* of getting the handle: NVML_SUCCESS or why it could not be had */
    char bus_id[32];
};

/* One fact of a GPU as text, or what nvidia-smi prints in its place, such as "[N/A]". */
void smi_value(const struct gpu *gpu, const char *field, int with_unit, char out[SMI_VALUE]);

/* The unit of a field ("MiB", or "" without one), or NULL for an unknown field. */
const char *smi_unit(const char *field);

/* The outputs. Each returns the exit code. */
int smi_table(const struct gpu *gpus, unsigned count);
int smi_full(const struct gpu *gpus, unsigned count);
int smi_list(const struct gpu *gpus, unsigned count);
int smi_query(const struct gpu *gpus, unsigned count, const char *fields, const char *format);
int smi_query_processes(const char *fields, const char *format);

/* Resets the GPUs, with the fault tool of the machine. Returns the exit code. */
int smi_reset(const struct gpu *gpus, unsigned count);

/* MIG: the mode of GPUs, the devices of one in -L and -q, and `nvidia-smi mig`. */
struct mig_options {
    const char *action, *profiles; /* -lgip, -lgi, -cgi, -cci, -dci or -dgi; of -cgi, by commas */
    int with_compute;              /* -C */
};
int smi_set_mig(const struct gpu *gpus, unsigned count, unsigned mode);
void smi_list_mig(const struct gpu *gpu);
void smi_full_mig(const struct gpu *gpu);
int smi_mig(const struct gpu *gpus, unsigned count, const struct mig_options *options);

#endif
