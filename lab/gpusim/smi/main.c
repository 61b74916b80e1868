/* Simulated nvidia-smi: options, opening NVML, and failing the way the real one does. */
#include "smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum action { TABLE, FULL, LIST, QUERY, PROCESSES, PERSISTENCE, RESET, VERSION, MIG_MODE, MIG };

struct options {
    enum action action;
    const char *fields, *format, *only; /* only: index, UUID or bus id of one GPU */
    unsigned mode;
    struct mig_options mig;
};

static void usage(void) {
    printf("NVIDIA-SMI (SIMULATED by the gpuboot lab) v%s\n\n"
           "nvidia-smi [-i ID] [-L | -q | -pm 0|1 | --gpu-reset | --version |\n"
           "            --query-gpu=FIELDS --format=csv[,noheader][,nounits] |\n"
           "            --query-compute-apps=FIELDS --format=csv[,noheader][,nounits] | -mig 0|1]\n"
           "nvidia-smi mig [-i ID] [-lgip | -lgi | -cgi PROFILES [-C] | -cci | -dci | -dgi]\n",
           SIM_DRIVER_VERSION);
}

/* The value of "--name=value", "--name value" or "-n value", or NULL if this is not that option. */
static const char *option_value(char **argv, int *at, const char *name) {
    size_t length = strlen(name);
    if (strncmp(argv[*at], name, length) != 0) return NULL;
    if (argv[*at][length] == '=') return argv[*at] + length + 1;
    if (argv[*at][length] || !argv[*at + 1]) return NULL;
    return argv[++*at];
}

/* What follows `nvidia-smi mig`. */
static int parse_mig(char **argv, int *at, struct options *options) {
    static const char *const actions[] = {"-lgip", "-lgi", "-cgi", "-cci", "-dci", "-dgi"};
    const char *value;
    if (strcmp(argv[*at], "-C") == 0) return options->mig.with_compute = 1;
    if ((value = option_value(argv, at, "-cgi"))) {
        options->mig.action = "-cgi";
        options->mig.profiles = value;
        return 1;
    }
    for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(argv[*at], actions[i]) == 0) options->mig.action = actions[i];
    if ((value = option_value(argv, at, "-i"))) options->only = value;
    return value || options->mig.action;
}

static int parse_option(char **argv, int *at, struct options *options) {
    const char *value;
    if (options->action == MIG) return parse_mig(argv, at, options);
    if (strcmp(argv[*at], "mig") == 0)
        options->action = MIG;
    else if ((value = option_value(argv, at, "-mig"))) {
        options->action = MIG_MODE;
        options->mode = strcmp(value, "1") == 0;
    } else if (strcmp(argv[*at], "-L") == 0 || strcmp(argv[*at], "--list-gpus") == 0)
        options->action = LIST;
    else if (strcmp(argv[*at], "-q") == 0 || strcmp(argv[*at], "--query") == 0)
        options->action = FULL;
    else if (strcmp(argv[*at], "-r") == 0 || strcmp(argv[*at], "--gpu-reset") == 0)
        options->action = RESET;
    else if (strcmp(argv[*at], "--version") == 0)
        options->action = VERSION;
    else if ((value = option_value(argv, at, "--query-gpu")))
        *options = (struct options){QUERY, value, options->format, options->only, 0, {0}};
    else if ((value = option_value(argv, at, "--query-compute-apps")))
        *options = (struct options){PROCESSES, value, options->format, options->only, 0, {0}};
    else if ((value = option_value(argv, at, "--format")))
        options->format = value;
    else if ((value = option_value(argv, at, "-i")) || (value = option_value(argv, at, "--id")))
        options->only = value;
    else if ((value = option_value(argv, at, "-pm")) ||
             (value = option_value(argv, at, "--persistence-mode"))) {
        options->action = PERSISTENCE;
        options->mode = strcmp(value, "1") == 0 || strcasecmp(value, "ENABLED") == 0;
    } else
        return 0;
    return 1;
}

/* Prints why NVML cannot be used, in the real tool's words; returns the exit code. */
static int report_failure(nvmlReturn_t reason) {
    char version[SMI_VALUE] = "";
    switch (reason) {
    case NVML_ERROR_LIBRARY_NOT_FOUND:
        printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure "
               "that the NVIDIA Display Driver is properly installed and present in your system.\n"
               "Please also try adding directory that contains libnvidia-ml.so to your system "
               "PATH.\n");
        break;
    case NVML_ERROR_DRIVER_NOT_LOADED:
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
               "Make sure that the latest NVIDIA driver is installed and running.\n\n");
        break;
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        printf("Failed to initialize NVML: Function Not Found\n");
        break;
    default:
        printf("Failed to initialize NVML: %s\n", nvmlErrorString(reason));
        if (reason == NVML_ERROR_LIB_RM_VERSION_MISMATCH &&
            nvmlSystemGetNVMLVersion(version, sizeof version) == NVML_SUCCESS)
            printf("NVML library version: %s\n", strchr(version, '.') + 1);
    }
    return (int)reason;
}

/* The bus id even of a lost GPU; only the lab's own configuration knows that one. */
static void fill_bus_id(struct gpu *gpu) {
    nvmlPciInfo_t pci;
    if (gpu->state == NVML_SUCCESS &&
        nvmlDeviceGetPciInfo_v3(gpu->device, &pci) == NVML_SUCCESS) {
        snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", pci.busId);
        return;
    }
    unsigned left = gpu->index;
    for (unsigned i = 0; i < sim_gpu_count(); i++)
        if (sim_gpu_visible(i) && left-- == 0)
            snprintf(gpu->bus_id, sizeof gpu->bus_id, "0000:%02X:00.0", sim_gpu_bus(i));
}

static unsigned find_gpus(struct gpu *gpus, const char *only) {
    unsigned total = 0, kept = 0;
    nvmlDeviceGetCount_v2(&total);
    sim_refresh();
    for (unsigned i = 0; i < total && kept < SIM_MAX_GPUS; i++) {
        struct gpu *gpu = &gpus[kept];
        char index[16], uuid[SMI_VALUE] = "";
        memset(gpu, 0, sizeof *gpu);
        gpu->index = i;
        gpu->state = nvmlDeviceGetHandleByIndex_v2(i, &gpu->device);
        fill_bus_id(gpu);
        snprintf(index, sizeof index, "%u", i);
        if (gpu->state == NVML_SUCCESS) nvmlDeviceGetUUID(gpu->device, uuid, sizeof uuid);
        if (!only || strcmp(only, index) == 0 || strcmp(only, uuid) == 0 ||
            strcasecmp(only, gpu->bus_id) == 0)
            kept++;
    }
    return kept;
}

/* All outputs but the list give up at the first GPU that cannot be reached. */
static int report_unreachable(const struct gpu *gpus, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (gpus[i].state == NVML_SUCCESS) continue;
        printf("Unable to determine the device handle for GPU%s: %s.  Reboot the system to "
               "recover this GPU\n\n", gpus[i].bus_id, nvmlErrorString(gpus[i].state));
        return (int)gpus[i].state;
    }
    return 0;
}

static int set_persistence(const struct gpu *gpus, unsigned count, unsigned mode) {
    const char *word = mode ? "Enabled" : "Disabled";
    for (unsigned i = 0; i < count; i++) {
        unsigned now = 0;
        nvmlReturn_t result = nvmlDeviceGetPersistenceMode(gpus[i].device, &now);
        int already = result == NVML_SUCCESS && now == mode;
        if (result == NVML_SUCCESS && !already)
            result = nvmlDeviceSetPersistenceMode(gpus[i].device, mode);
        if (result != NVML_SUCCESS) {
            printf("Unable to set persistence mode for GPU %s: %s\nTerminating early due to "
                   "previous errors.\n", gpus[i].bus_id, nvmlErrorString(result));
            return (int)result;
        }
        printf(already ? "Persistence mode is already %s for GPU %s.\n"
                       : "%s persistence mode for GPU %s.\n", word, gpus[i].bus_id);
    }
    printf("All done.\n");
    return 0;
}

static int run(const struct options *options, const struct gpu *gpus, unsigned count) {
    if (options->action == LIST) return smi_list(gpus, count);
    int unreachable = report_unreachable(gpus, count);
    if (unreachable) return unreachable;
    switch (options->action) {
    case FULL: return smi_full(gpus, count);
    case QUERY: return smi_query(gpus, count, options->fields, options->format);
    case PROCESSES: return smi_query_processes(options->fields, options->format);
    case PERSISTENCE: return set_persistence(gpus, count, options->mode);
    case MIG_MODE: return smi_set_mig(gpus, count, options->mode);
    case MIG: return smi_mig(gpus, count, &options->mig);
    case RESET: return smi_reset(gpus, count);
    default: return smi_table(gpus, count);
    }
}

int main(int argc, char **argv) {
    struct options options = {TABLE, NULL, NULL, NULL, 0, {0}};
    struct gpu gpus[SIM_MAX_GPUS];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            usage();
            return 0;
        }
        if (parse_option(argv, &i, &options)) continue;
        printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n");
        return SMI_BAD_ARGUMENT;
    }
    if (options.action == MIG && (!options.mig.action ||
                                  (!options.mig.profiles && !strcmp(options.mig.action, "-cgi")))) {
        usage();
        return SMI_BAD_ARGUMENT;
    }
    nvmlReturn_t result = nvml_open();
    if (result == NVML_SUCCESS) result = nvmlInit_v2();
    if (result != NVML_SUCCESS) return report_failure(result);
    if (options.action == VERSION) {
        printf("NVIDIA-SMI version  : %s (SIMULATED)\n", SIM_DRIVER_VERSION);
        return 0;
    }
    unsigned count = find_gpus(gpus, options.only);
    if (count == 0) {
        printf("No devices were found\n");
        return NVML_ERROR_NOT_FOUND;
    }
    int code = run(&options, gpus, count);
    nvmlShutdown();
    return code;
}
