/* The simulated GPUs' state, shared by every simulated driver library of the lab.
 *
 * The state is one text file, the "configuration": lines of "key = value" for all GPUs or
 * "<gpu>.key = value" for one. It is made when the simulated driver is loaded, from the machine's
 * hardware.conf, and named like a GSP firmware file so that the real container toolkit mounts it
 * into containers with the driver. After a line "[faults]" come lines that were appended while the
 * driver runs: faults, and settings such as the persistence mode. They end with " @ " and the time
 * in milliseconds; the value "default" ends a fault. Appending, never rewriting, keeps the inode
 * that running containers have mounted, leaves no moment with half a file, and is a history: every
 * process computes the same counters from it, without a process that counts.
 */
#ifndef GPUSIM_SIMCONF_H
#define GPUSIM_SIMCONF_H

#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_GPUS 16
#define SIM_ALL_GPUS (-1)
#define SIM_TEXT 96

#ifndef SIM_DRIVER_VERSION
#error "compile with -DSIM_DRIVER_VERSION, such as \"595.91.07\""
#endif
#ifndef SIM_CUDA_VERSION
#define SIM_CUDA_VERSION 13020 /* what R595 reports: 1000 x major + 10 x minor */
#endif

enum sim_driver {
    SIM_DRIVER_READY,
    SIM_DRIVER_NOT_LOADED,
    SIM_DRIVER_MISMATCH, /* another version is loaded than this library belongs to */
};

/* Reads the configuration again if it changed. Every library entry point calls this first. */
void sim_refresh(void);

/* Whether the driver is loaded (as of the last refresh) and is this library's version. */
enum sim_driver sim_driver_state(void);

/* The value of a GPU's key, else that of the key for all GPUs, else the fallback. */
void sim_text(int gpu, const char *key, const char *fallback, char out[SIM_TEXT]);
uint64_t sim_number(int gpu, const char *key, uint64_t fallback);

/* How many times the key was set for this GPU since the driver was loaded, cleared or not, and
 * the value that it was given the n-th time (from 0). Each setting of "xid" is one event. */
unsigned sim_event_count(int gpu, const char *key);
uint64_t sim_event(int gpu, const char *key, unsigned n);

/* Seconds since the epoch: now, when the driver was loaded, and when a GPU's key was last set or
 * ended as a fault (else when the driver was loaded). */
double sim_now(void);
double sim_loaded_at(void);
double sim_set_at(int gpu, const char *key);

/* The sum over the pieces of time since `since` in which no fault of the GPU changed. In `piece`,
 * sim_text() and sim_number() answer with what was in force in that piece. */
typedef double (*sim_piece)(int gpu, double from, double until, const void *context);
double sim_sum(int gpu, double since, sim_piece piece, const void *context);

/* Appends "<gpu>.key = value". Returns 0, or -1 with errno set. */
int sim_append(int gpu, const char *key, uint64_t value);

/* The configuration, opened to be read; -1 without one. */
int sim_conf_open(void);

/* An error counter: the key's number, and since that was set what "<key>_rate" adds a minute. */
uint64_t sim_count(int gpu, const char *key);

/* How many GPUs the hardware has, at most SIM_MAX_GPUS. */
unsigned sim_gpu_count(void);

/* Whether this process has a device node below /dev. */
int sim_device_node(const char *name);

/* Whether this process sees the GPU's device node, as in a container that was given it. */
int sim_gpu_visible(unsigned gpu);

void sim_gpu_uuid(unsigned gpu, char out[SIM_TEXT]);
unsigned sim_gpu_bus(unsigned gpu);

/* Load in percent that is set: the key "util", or a slow wave of at most "util_max" (default 0). */
unsigned sim_gpu_set_load(unsigned gpu);

/* Load in percent: what is set, or what processes compute (simwork.h) where that is more. */
unsigned sim_gpu_load(unsigned gpu);

/* The mean of the load that is set, over a piece of time in which its keys did not change, in
 * percent. What processes computed is not known afterwards. */
double sim_gpu_mean_load(int gpu, double from, double until);

#endif
