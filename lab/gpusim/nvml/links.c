/* Simulated NVML: NVLink and the fabric. A board with NVSwitches has its links there; one without
 * connects its GPUs to each other; a lone GPU's links are down. */
#include "state.h"

#include <stdio.h>
#include <string.h>

#define LINKS 18 /* of an H100 or H200 */

static unsigned switches(void) {
    return (unsigned)sim_number(SIM_ALL_GPUS, "nvswitches", 0);
}

int sim_links_up(void) {
    return switches() > 0 || sim_gpu_count() > 1;
}

NVML_API nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *active) {
    REQUIRE_DEVICE(device);
    if (link >= LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    *active = sim_links_up() ? NVML_FEATURE_ENABLED : 0;
    return NVML_SUCCESS;
}

/* The bus of what is at the other end: a switch, or one of the other GPUs. */
static unsigned remote_bus(unsigned gpu, unsigned link) {
    if (switches()) return 5 + link % switches();
    return sim_gpu_bus((gpu + 1 + link % (sim_gpu_count() - 1)) % sim_gpu_count());
}

NVML_API nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                             nvmlPciInfo_t *pci) {
    REQUIRE_DEVICE(device);
    if (link >= LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    if (!sim_links_up()) return NVML_ERROR_NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    pci->bus = remote_bus(device->gpu, link);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned *type) {
    REQUIRE_DEVICE(device);
    if (link >= LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    if (!sim_links_up()) return NVML_ERROR_NOT_SUPPORTED;
    *type = switches() ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, unsigned cap UNUSED,
                                unsigned *status) {
    REQUIRE_DEVICE(device);
    REQUIRE_DEVICE(other);
    *status = sim_links_up() ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* 0 no fabric, 1 not started, 2 in progress, 3 completed, 4 failed; as DCGM numbers it. */
static unsigned fabric_status(nvmlDevice_t device) {
    unsigned status = 0;
    /* The fabric manager says "fabric" once for the whole machine, on GPU 0. */
    if (switches()) status = sim_number(0, "fabric", 0) ? 3 : 1;
    return (unsigned)sim_number((int)device->gpu, "fabric_status", status);
}

/* NVML tells a failure by an error beside the state "completed". */
NVML_API nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *fabric) {
    REQUIRE_DEVICE(device);
    unsigned status = fabric_status(device);
    memset(fabric, 0, sizeof *fabric);
    fabric->state = status > 3 ? 3 : (unsigned char)status;
    fabric->status = status > 3 ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
    return NVML_SUCCESS;
}

NVML_API nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *fabric) {
    nvmlGpuFabricInfo_t info;
    nvmlReturn_t result = nvmlDeviceGetGpuFabricInfo(device, &info);
    if (result != NVML_SUCCESS) return result;
    fabric->state = info.state;
    fabric->status = info.status;
    return NVML_SUCCESS;
}
