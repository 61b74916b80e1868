/* NVML as its clients in the lab use it: opened at run time, as real ones do. */
#ifndef GPUSIM_NVML_API_H
#define GPUSIM_NVML_API_H

#include "nvml_abi.h"

#define NVML_FUNCTIONS(X)                                                                      \
    X(nvmlReturn_t, nvmlInit_v2, (void))                                                       \
    X(nvmlReturn_t, nvmlShutdown, (void))                                                      \
    X(const char *, nvmlErrorString, (nvmlReturn_t))                                           \
    X(nvmlReturn_t, nvmlSystemGetDriverVersion, (char *, unsigned))                            \
    X(nvmlReturn_t, nvmlSystemGetNVMLVersion, (char *, unsigned))                              \
    X(nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int *))                                \
    X(nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned *))                                       \
    X(nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t *))                 \
    X(nvmlReturn_t, nvmlDeviceGetIndex, (nvmlDevice_t, unsigned *))                            \
    X(nvmlReturn_t, nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned *))                      \
    X(nvmlReturn_t, nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned))                       \
    X(nvmlReturn_t, nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned))                       \
    X(nvmlReturn_t, nvmlDeviceGetSerial, (nvmlDevice_t, char *, unsigned))                     \
    X(nvmlReturn_t, nvmlDeviceGetVbiosVersion, (nvmlDevice_t, char *, unsigned))               \
    X(nvmlReturn_t, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *))                  \
    X(nvmlReturn_t, nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t, int *, int *))          \
    X(nvmlReturn_t, nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, nvmlMemory_v2_t *))             \
    X(nvmlReturn_t, nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned *))                 \
    X(nvmlReturn_t, nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned *))                       \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t, unsigned *))             \
    X(nvmlReturn_t, nvmlDeviceGetPowerManagementDefaultLimit, (nvmlDevice_t, unsigned *))      \
    X(nvmlReturn_t, nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *))        \
    X(nvmlReturn_t, nvmlDeviceGetClockInfo, (nvmlDevice_t, unsigned, unsigned *))              \
    X(nvmlReturn_t, nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, unsigned, unsigned *))           \
    X(nvmlReturn_t, nvmlDeviceGetPerformanceState, (nvmlDevice_t, unsigned *))                 \
    X(nvmlReturn_t, nvmlDeviceGetPersistenceMode, (nvmlDevice_t, unsigned *))                  \
    X(nvmlReturn_t, nvmlDeviceSetPersistenceMode, (nvmlDevice_t, unsigned))                    \
    X(nvmlReturn_t, nvmlDeviceGetEccMode, (nvmlDevice_t, unsigned *, unsigned *))              \
    X(nvmlReturn_t, nvmlDeviceGetTotalEccErrors,                                               \
      (nvmlDevice_t, unsigned, unsigned, unsigned long long *))                                \
    X(nvmlReturn_t, nvmlDeviceGetRemappedRows,                                                 \
      (nvmlDevice_t, unsigned *, unsigned *, unsigned *, unsigned *))                          \
    X(nvmlReturn_t, nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned *, unsigned *))              \
    X(nvmlReturn_t, nvmlDeviceSetMigMode, (nvmlDevice_t, unsigned, nvmlReturn_t *))            \
    X(nvmlReturn_t, nvmlDeviceGetMigDeviceHandleByIndex,                                       \
      (nvmlDevice_t, unsigned, nvmlDevice_t *))                                                \
    X(nvmlReturn_t, nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned *))                    \
    X(nvmlReturn_t, nvmlDeviceGetComputeInstanceId, (nvmlDevice_t, unsigned *))                \
    X(nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfo,                                       \
      (nvmlDevice_t, unsigned, nvmlGpuInstanceProfileInfo_t *))                                \
    X(nvmlReturn_t, nvmlDeviceGetGpuInstanceRemainingCapacity,                                 \
      (nvmlDevice_t, unsigned, unsigned *))                                                    \
    X(nvmlReturn_t, nvmlDeviceCreateGpuInstance, (nvmlDevice_t, unsigned, nvmlGpuInstance_t *)) \
    X(nvmlReturn_t, nvmlDeviceGetGpuInstances,                                                 \
      (nvmlDevice_t, unsigned, nvmlGpuInstance_t *, unsigned *))                               \
    X(nvmlReturn_t, nvmlGpuInstanceGetInfo, (nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *))      \
    X(nvmlReturn_t, nvmlGpuInstanceDestroy, (nvmlGpuInstance_t))                               \
    X(nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceProfileInfo,                              \
      (nvmlGpuInstance_t, unsigned, unsigned, nvmlComputeInstanceProfileInfo_t *))             \
    X(nvmlReturn_t, nvmlGpuInstanceCreateComputeInstance,                                      \
      (nvmlGpuInstance_t, unsigned, nvmlComputeInstance_t *))                                  \
    X(nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceById,                                     \
      (nvmlGpuInstance_t, unsigned, nvmlComputeInstance_t *))                                  \
    X(nvmlReturn_t, nvmlComputeInstanceGetInfo_v2,                                             \
      (nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *))                                    \
    X(nvmlReturn_t, nvmlComputeInstanceDestroy, (nvmlComputeInstance_t))                       \
    X(nvmlReturn_t, nvmlDeviceGetGpuFabricInfo, (nvmlDevice_t, nvmlGpuFabricInfo_t *))         \
    X(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned *))           \
    X(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned *))            \
    X(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned *))                \
    X(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned *))                 \
    X(nvmlReturn_t, nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t, unsigned long long *))

#define NVML_DECLARE(type, name, parameters) extern type(*name) parameters;
NVML_FUNCTIONS(NVML_DECLARE)

/* Opens libnvidia-ml.so.1 and finds every function above: NVML_SUCCESS,
 * NVML_ERROR_LIBRARY_NOT_FOUND or NVML_ERROR_FUNCTION_NOT_FOUND. */
nvmlReturn_t nvml_open(void);

#endif
