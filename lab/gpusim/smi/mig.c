/* Simulated nvidia-smi: MIG mode, and `nvidia-smi mig` with its lists, in the real tool's words. */
#include "smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS 10 /* kinds of GPU instances that NVML numbers, of cards with 7 compute slices */
#define COMPUTE_KINDS 5
#define MOST 14
#define RULE "+-----------------------------------------------------------------------------+\n"
#define SHORT_RULE "+---------------------------------------------------------+\n"

int smi_set_mig(const struct gpu *gpus, unsigned count, unsigned mode) {
    for (unsigned i = 0; i < count; i++) {
        nvmlReturn_t activation = NVML_SUCCESS;
        nvmlReturn_t result = nvmlDeviceSetMigMode(gpus[i].device, mode, &activation);
        if (result != NVML_SUCCESS) {
            printf("Unable to %s MIG Mode for GPU %s: %s\nTerminating early due to previous "
                   "errors.\n", mode ? "enable" : "disable", gpus[i].bus_id,
                   nvmlErrorString(result));
            return (int)result;
        }
        printf("%s MIG Mode for GPU %s\n", mode ? "Enabled" : "Disabled", gpus[i].bus_id);
    }
    printf("All done.\n");
    return 0;
}

/* The profile of a MIG device, or of a profile of GPU instances: NVML tells no names of them. */
static void profile_name(nvmlDevice_t device, const nvmlGpuInstanceProfileInfo_t *info, int media,
                         char out[SMI_VALUE]) {
    nvmlMemory_v2_t memory = {.version = sizeof memory | 2u << 24};
    nvmlDeviceGetMemoryInfo_v2(device, &memory);
    unsigned long long mib = memory.total >> 20, whole = (mib + 1023) / 1024;
    unsigned long long eighths = (info->memorySizeMB * 8 + mib - 1) / mib;
    snprintf(out, SMI_VALUE, "%ug.%llugb%s", info->sliceCount, (2 * whole * eighths + 8) / 16,
             media ? "+me" : "");
}

/* The profile with an id, or a name, of a card. */
static int find_profile(nvmlDevice_t device, const char *word, unsigned id,
                        nvmlGpuInstanceProfileInfo_t *info, char name[SMI_VALUE]) {
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (nvmlDeviceGetGpuInstanceProfileInfo(device, kind, info) != NVML_SUCCESS) continue;
        profile_name(device, info, kind == 7, name);
        if (word ? strcmp(word, name) == 0 : info->id == id) return 1;
    }
    return 0;
}

static int enabled(const struct gpu *gpu) {
    unsigned now = 0, pending = 0;
    return nvmlDeviceGetMigMode(gpu->device, &now, &pending) == NVML_SUCCESS && now;
}

void smi_list_mig(const struct gpu *gpu) {
    nvmlDevice_t mig;
    for (unsigned i = 0; nvmlDeviceGetMigDeviceHandleByIndex(gpu->device, i, &mig) == NVML_SUCCESS; i++) {
        char name[SMI_VALUE], uuid[SMI_VALUE];
        if (nvmlDeviceGetName(mig, name, sizeof name) != NVML_SUCCESS) continue;
        if (nvmlDeviceGetUUID(mig, uuid, sizeof uuid) != NVML_SUCCESS) continue;
        printf("  MIG %-12sDevice %2u: (UUID: %s)\n", strstr(name, "MIG ") + 4, i, uuid);
    }
}

void smi_full_mig(const struct gpu *gpu) {
    nvmlDevice_t mig;
    for (unsigned i = 0; nvmlDeviceGetMigDeviceHandleByIndex(gpu->device, i, &mig) == NVML_SUCCESS; i++) {
        unsigned instance = 0, compute = 0;
        nvmlDeviceGetGpuInstanceId(mig, &instance);
        nvmlDeviceGetComputeInstanceId(mig, &compute);
        if (i == 0) printf("    MIG Devices\n");
        printf("        MIG Device\n%-50s: %u\n%-50s: %u\n%-50s: %u\n",
               "            Index", i, "            GPU Instance ID", instance,
               "            Compute Instance ID", compute);
    }
}

static int list_profiles(const struct gpu *gpu) {
    nvmlGpuInstanceProfileInfo_t info;
    char name[SMI_VALUE];
    printf(RULE "| GPU instance profiles:                                                      |\n"
           "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
           "|                              Free/Total   GiB              CE    JPEG  OFA  |\n"
           "|=============================================================================|\n");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        unsigned left = 0;
        if (nvmlDeviceGetGpuInstanceProfileInfo(gpu->device, kind, &info) != NVML_SUCCESS) continue;
        profile_name(gpu->device, &info, kind == 7, name);
        nvmlDeviceGetGpuInstanceRemainingCapacity(gpu->device, info.id, &left);
        printf("| %3u  MIG %-12.12s %3u     %u/%u      %7.2f      No    %3u   %3u   %3u   |\n"
               "|                                                            %3u   %3u   %3u   |\n" RULE,
               gpu->index, name, info.id, left, info.instanceCount,
               (double)info.memorySizeMB / 1024, info.multiprocessorCount, info.decoderCount,
               info.encoderCount, info.copyEngineCount, info.jpegCount, info.ofaCount);
    }
    return 0;
}

/* Calls back for each GPU instance of a card, in the order of profiles. */
typedef int (*each_instance)(const struct gpu *gpu, nvmlGpuInstance_t instance,
                             const nvmlGpuInstanceInfo_t *info, const char *profile);

static int visit(const struct gpu *gpu, each_instance call) {
    nvmlGpuInstance_t found[MOST];
    nvmlGpuInstanceProfileInfo_t profile;
    nvmlGpuInstanceInfo_t info;
    char name[SMI_VALUE];
    int code = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        unsigned count = 0;
        if (nvmlDeviceGetGpuInstanceProfileInfo(gpu->device, kind, &profile) != NVML_SUCCESS) continue;
        profile_name(gpu->device, &profile, kind == 7, name);
        nvmlDeviceGetGpuInstances(gpu->device, profile.id, found, &count);
        for (unsigned i = 0; i < count; i++)
            if (nvmlGpuInstanceGetInfo(found[i], &info) == NVML_SUCCESS)
                code = call(gpu, found[i], &info, name) ? 1 : code;
    }
    return code;
}

static int print_instance(const struct gpu *gpu, nvmlGpuInstance_t instance,
                          const nvmlGpuInstanceInfo_t *info, const char *profile) {
    (void)instance;
    printf("| %3u  MIG %-16.16s %3u      %3u          %u:%u     |\n" SHORT_RULE, gpu->index, profile,
           info->profileId, info->id, info->placement.start, info->placement.size);
    return 0;
}

static int list_instances(const struct gpu *gpu) {
    printf(SHORT_RULE "| GPU instances:                                          |\n"
           "| GPU   Name               Profile  Instance   Placement  |\n"
           "|                            ID       ID       Start:Size |\n"
           "|=========================================================|\n");
    return visit(gpu, print_instance);
}

/* A compute instance of the whole GPU instance. */
static int create_compute(const struct gpu *gpu, nvmlGpuInstance_t instance,
                          const nvmlGpuInstanceInfo_t *info, const char *profile) {
    nvmlComputeInstanceProfileInfo_t found;
    nvmlComputeInstance_t made;
    nvmlComputeInstanceInfo_t details;
    unsigned best = 0;
    for (unsigned kind = 0; kind < COMPUTE_KINDS; kind++)
        if (nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind, 0, &found) == NVML_SUCCESS)
            best = kind;
    nvmlReturn_t result = nvmlGpuInstanceCreateComputeInstance(instance, best, &made);
    if (result == NVML_SUCCESS) result = nvmlComputeInstanceGetInfo_v2(made, &details);
    if (result != NVML_SUCCESS) {
        printf("Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile %u: "
               "%s\nFailed to create compute instances: %s\n", gpu->index, info->id, best,
               nvmlErrorString(result), nvmlErrorString(result));
        return (int)result;
    }
    printf("Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using "
           "profile MIG %s (ID %2u)\n", details.id, gpu->index, info->id, profile, best);
    return 0;
}

static int destroy_compute(const struct gpu *gpu, nvmlGpuInstance_t instance,
                           const nvmlGpuInstanceInfo_t *info, const char *profile) {
    (void)profile;
    nvmlComputeInstance_t found;
    for (unsigned id = 0; id < MOST; id++) {
        if (nvmlGpuInstanceGetComputeInstanceById(instance, id, &found) != NVML_SUCCESS) continue;
        nvmlReturn_t result = nvmlComputeInstanceDestroy(found);
        if (result != NVML_SUCCESS) return (int)result;
        printf("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance ID %2u\n",
               id, gpu->index, info->id);
    }
    return 0;
}

static int destroy_instance(const struct gpu *gpu, nvmlGpuInstance_t instance,
                            const nvmlGpuInstanceInfo_t *info, const char *profile) {
    (void)profile;
    nvmlReturn_t result = nvmlGpuInstanceDestroy(instance);
    if (result == NVML_SUCCESS) {
        printf("Successfully destroyed GPU instance ID %2u from GPU %2u\n", info->id, gpu->index);
        return 0;
    }
    printf("Unable to destroy GPU instance ID %2u from GPU %2u: %s\nFailed to destroy GPU "
           "instances: %s\n", info->id, gpu->index, nvmlErrorString(result),
           nvmlErrorString(result));
    return (int)result;
}

/* One word of -cgi: the id or name of a profile. */
static int create_instance(const struct gpu *gpu, const char *word, int with_compute) {
    nvmlGpuInstanceProfileInfo_t profile;
    nvmlGpuInstance_t made;
    nvmlGpuInstanceInfo_t info;
    char name[SMI_VALUE], *end;
    unsigned id = (unsigned)strtoul(word, &end, 10);
    nvmlReturn_t result = NVML_ERROR_INVALID_ARGUMENT;
    if (find_profile(gpu->device, *end ? word : NULL, id, &profile, name))
        result = nvmlDeviceCreateGpuInstance(gpu->device, profile.id, &made);
    if (result == NVML_SUCCESS) result = nvmlGpuInstanceGetInfo(made, &info);
    if (result != NVML_SUCCESS) {
        printf("Unable to create a GPU instance on GPU %2u using profile %s: %s\nFailed to create "
               "GPU instances: %s\n", gpu->index, word, nvmlErrorString(result),
               nvmlErrorString(result));
        return (int)result;
    }
    printf("Successfully created GPU instance ID %2u on GPU %2u using profile MIG %s (ID %2u)\n",
           info.id, gpu->index, name, profile.id);
    return with_compute ? create_compute(gpu, made, &info, name) : 0;
}

static int create_instances(const struct gpu *gpu, const char *words, int with_compute) {
    char copy[256], *state = NULL;
    int code = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, ",", &state); word && !code; word = strtok_r(NULL, ",", &state))
        code = create_instance(gpu, word, with_compute);
    return code;
}

int smi_mig(const struct gpu *gpus, unsigned count, const struct mig_options *options) {
    int code = 0, any = 0;
    for (unsigned i = 0; i < count && !code; i++) {
        unsigned now, pending;
        const struct gpu *gpu = &gpus[i];
        if (strcmp(options->action, "-lgip") == 0) {
            if (nvmlDeviceGetMigMode(gpu->device, &now, &pending) != NVML_SUCCESS) continue;
            code = list_profiles(gpu);
        } else if (!enabled(gpu))
            continue;
        else if (strcmp(options->action, "-lgi") == 0)
            code = list_instances(gpu);
        else if (strcmp(options->action, "-cgi") == 0)
            code = create_instances(gpu, options->profiles, options->with_compute);
        else if (strcmp(options->action, "-cci") == 0)
            code = visit(gpu, create_compute);
        else if (strcmp(options->action, "-dci") == 0)
            code = visit(gpu, destroy_compute);
        else
            code = visit(gpu, destroy_instance);
        any = 1;
    }
    if (any) return code;
    printf("No MIG-%s devices found.\n",
           strcmp(options->action, "-lgip") == 0 ? "supported" : "enabled");
    return NVML_ERROR_NOT_FOUND;
}
