/* Simulated NVML: what this GPU does not do. Virtual GPUs and fans answer "Not
 * Supported" as a GPU without them does, and no process is ever listed. */
#include "state.h"

#define NOT_SUPPORTED(function, ...)                  \
    NVML_API function(nvmlDevice_t device, __VA_ARGS__) { \
        REQUIRE_DEVICE(device);                       \
        return NVML_ERROR_NOT_SUPPORTED;              \
    }

NOT_SUPPORTED(nvmlDeviceGetVirtualizationMode, unsigned *mode UNUSED)
NOT_SUPPORTED(nvmlDeviceGetFanSpeed, unsigned *percent UNUSED)
NOT_SUPPORTED(nvmlDeviceGetAddressingMode, void *mode UNUSED)
NOT_SUPPORTED(nvmlDeviceGetDriverModel, unsigned *current UNUSED, unsigned *pending UNUSED)
NOT_SUPPORTED(nvmlDeviceGetDriverModel_v2, unsigned *current UNUSED, unsigned *pending UNUSED)

#define NO_PROCESSES(function)                                                            \
    NVML_API function(nvmlDevice_t device, unsigned *count, void *processes UNUSED) {     \
        REQUIRE_DEVICE(device);                                                           \
        *count = 0;                                                                       \
        return NVML_SUCCESS;                                                              \
    }

NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
