/* Simulated nvidia-persistenced: a daemon that keeps every GPU in persistence mode while it runs.
 *
 * Like the real one it refuses to start without a loaded driver, forks into the background, writes
 * a pid file, and turns the mode off again when it is stopped.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "../common/nvml_api.h"

#define RUN_FOLDER "/run/nvidia-persistenced"
#define PID_FILE RUN_FOLDER "/nvidia-persistenced.pid"

/* Returns how many GPUs took the mode. */
static unsigned set_all(unsigned mode) {
    unsigned count = 0, done = 0;
    nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t device;
        if (nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
            nvmlDeviceSetPersistenceMode(device, mode) != NVML_SUCCESS)
            syslog(LOG_WARNING, "GPU %u: cannot set persistence mode", i);
        else
            done++;
    }
    return done;
}

static int write_pid_file(void) {
    mkdir(RUN_FOLDER, 0755);
    FILE *file = fopen(PID_FILE, "we");
    if (!file) return -1;
    fprintf(file, "%d\n", (int)getpid());
    return fclose(file);
}

static int fail(const char *why) {
    syslog(LOG_ERR, "%s", why);
    fprintf(stderr, "nvidia-persistenced failed to initialize. Check syslog for more details.\n");
    return 1;
}

int main(void) {
    sigset_t stop;
    int signal_number;
    openlog("nvidia-persistenced", LOG_PID, LOG_DAEMON);
    if (nvml_open() != NVML_SUCCESS) return fail("cannot open libnvidia-ml.so.1");
    nvmlReturn_t result = nvmlInit_v2();
    if (result != NVML_SUCCESS) return fail(nvmlErrorString(result));
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    if (daemon(0, 0) != 0 || write_pid_file() != 0) return fail("cannot go to the background");
    syslog(LOG_NOTICE, "SIMULATED by the gpuboot lab: persistence mode on %u GPUs", set_all(1));
    sigwait(&stop, &signal_number);
    set_all(0);
    unlink(PID_FILE);
    return 0;
}
