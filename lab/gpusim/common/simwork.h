/* What processes do on the simulated GPUs at this moment.
 *
 * libcuda tells, NVML reads, in other containers too. A process tells by a lock on one byte of the
 * configuration file, far behind its end: the byte's place says which GPU, what, and how much. A lock
 * needs no right to write and ends with its process, however that ends; so no load stays of one that
 * was killed. Of two processes that say exactly the same of one GPU, one is counted.
 */
#ifndef GPUSIM_SIMWORK_H
#define GPUSIM_SIMWORK_H

enum sim_work {
    SIM_COMPUTE,   /* arithmetic, in % of the time */
    SIM_COPY,      /* copies within the GPU's memory, in % of the time */
    SIM_TO_DEVICE, /* copies from the host, in % of the time */
    SIM_TO_HOST,   /* and to it */
    SIM_ALLOCATED, /* memory, in MiB */
    SIM_WORKS,
};

/* The sum over all processes; of what is in % at most 100. */
unsigned sim_work(int gpu, enum sim_work what);

/* This process does so much now; 0: nothing. Whatever keeps the file from being locked is passed
 * over: work then shows in no metric. */
void sim_work_tell(int gpu, enum sim_work what, unsigned value);

#endif
