/* Simulated nvidia-smi: resetting a GPU, which is the fault tool's work on a simulated one. */
#include "smi.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

static int run_tool(const struct gpu *gpu) {
    unsigned number = 0;
    char text[16];
    char *command[] = {"gpu-sim", "reset", text, NULL};
    pid_t child;
    int status;
    if (nvmlDeviceGetMinorNumber(gpu->device, &number) != NVML_SUCCESS) return -1;
    snprintf(text, sizeof text, "%u", number);
    if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) != 0) return -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The real tool refuses while a process uses the GPU; none ever uses a simulated one. */
int smi_reset(const struct gpu *gpus, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (run_tool(&gpus[i]) != 0) {
            printf("Resetting GPU %s is not supported.\n", gpus[i].bus_id);
            return NVML_ERROR_NOT_SUPPORTED;
        }
        printf("GPU %s was successfully reset.\n", gpus[i].bus_id);
    }
    printf("All done.\n");
    return 0;
}
