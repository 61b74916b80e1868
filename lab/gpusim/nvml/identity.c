/* Simulated NVML: what the system and its GPUs are. Unchanging while the driver is loaded. */
#include "mig.h"

#include <stdio.h>
#include <string.h>

/* An entry point that answers one text from the configuration. */
#define DEVICE_TEXT(function, key, fallback)                                \
    NVML_API function(nvmlDevice_t device, char *out, unsigned length) {    \
        char value[SIM_TEXT];                                               \
        REQUIRE_DEVICE(device);                                             \
        sim_text((int)device->gpu, key, fallback, value);                   \
        return sim_copy(out, length, value);                                \
    }

NVML_API nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned length) {
    char name[SIM_TEXT], profile[SIM_TEXT], whole[2 * SIM_TEXT + 8];
    struct sim_compute_instance mig;
    int divided = sim_mig_enter(device, &mig) == NVML_SUCCESS;
    if (!divided) REQUIRE_DEVICE(device);
    sim_text((int)(divided ? mig.gpu : device->gpu), "name", "NVIDIA H100 80GB HBM3", name);
    if (!divided) return sim_copy(out, length, name);
    sim_profile_name(mig.gpu, sim_instance(mig.gpu, mig.instance, NULL), profile);
    snprintf(whole, sizeof whole, "%s MIG %s", name, profile);
    return sim_copy(out, length, whole);
}

DEVICE_TEXT(nvmlDeviceGetVbiosVersion, "vbios", "96.00.SIMULATED")
DEVICE_TEXT(nvmlDeviceGetInforomImageVersion, "inforom", "SIMULATED")
DEVICE_TEXT(nvmlDeviceGetBoardPartNumber, "board_part", "SIMULATED")

NVML_API nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *out) {
    REQUIRE_DEVICE(device);
    return sim_copy(out, 80, SIM_DRIVER_VERSION); /* callers pass 80 bytes by contract */
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_MEMORY: return "Insufficient Memory";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

NVML_API nvmlSystemGetDriverVersion(char *out, unsigned length) {
    nvmlReturn_t entered = sim_enter();
    return entered == NVML_SUCCESS ? sim_copy(out, length, SIM_DRIVER_VERSION) : entered;
}

/* The library's own version needs no driver: real tools print it when initializing failed. */
NVML_API nvmlSystemGetNVMLVersion(char *out, unsigned length) {
    char version[SIM_TEXT];
    snprintf(version, sizeof version, "%d.%s", SIM_CUDA_VERSION / 1000, SIM_DRIVER_VERSION);
    return sim_copy(out, length, version);
}

NVML_API nvmlSystemGetCudaDriverVersion_v2(int *version) {
    if (!version) return NVML_ERROR_INVALID_ARGUMENT;
    *version = SIM_CUDA_VERSION;
    return NVML_SUCCESS;
}

NVML_API nvmlSystemGetCudaDriverVersion(int *version) {
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_API nvmlSystemGetProcessName(unsigned pid, char *out, unsigned length) {
    char path[64], name[256] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NVML_ERROR_NOT_FOUND;
    int found = fscanf(file, "%255[^\n]", name) == 1;
    fclose(file);
    return found ? sim_copy(out, length, name) : NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned length) {
    char uuid[SIM_TEXT];
    struct sim_compute_instance mig;
    if (sim_mig_enter(device, &mig) == NVML_SUCCESS) {
        sim_mig_uuid(&mig, uuid);
        return sim_copy(out, length, uuid);
    }
    REQUIRE_DEVICE(device);
    sim_gpu_uuid(device->gpu, uuid);
    return sim_copy(out, length, uuid);
}

NVML_API nvmlDeviceGetSerial(nvmlDevice_t device, char *out, unsigned length) {
    char serial[SIM_TEXT];
    REQUIRE_DEVICE(device);
    unsigned seed = (unsigned)sim_number(SIM_ALL_GPUS, "uuid_seed", 0);
    snprintf(serial, sizeof serial, "SIM%010u%02u", seed, device->gpu);
    return sim_copy(out, length, serial);
}

NVML_API nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    REQUIRE_DEVICE(device);
    *index = sim_index_of(device->gpu);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
    REQUIRE_DEVICE(device);
    *minor = device->gpu;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand) {
    REQUIRE_DEVICE(device);
    *brand = (unsigned)sim_number((int)device->gpu, "brand", NVML_BRAND_NVIDIA);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture) {
    REQUIRE_DEVICE(device);
    *architecture = (unsigned)sim_number((int)device->gpu, "arch", NVML_DEVICE_ARCH_HOPPER);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    REQUIRE_DEVICE(device);
    int capability = (int)sim_number((int)device->gpu, "compute_capability", 90);
    *major = capability / 10;
    *minor = capability % 10;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *cores) {
    REQUIRE_DEVICE(device);
    *cores = 16896;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    REQUIRE_DEVICE(device);
    unsigned model = (unsigned)sim_number((int)device->gpu, "pci_device_id", 0x2330);
    unsigned board = (unsigned)sim_number((int)device->gpu, "pci_subsystem_id", 0x16c1);
    memset(pci, 0, sizeof *pci);
    pci->bus = sim_gpu_bus(device->gpu);
    pci->pciDeviceId = model << 16 | 0x10de;
    pci->pciSubSystemId = board << 16 | 0x10de;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

NVML_API nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

NVML_API nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, int *level) {
    REQUIRE_DEVICE(one);
    REQUIRE_DEVICE(other);
    *level = one->gpu / 4 == other->gpu / 4 ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    if (one == other) *level = 0;
    return NVML_SUCCESS;
}
