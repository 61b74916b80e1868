/* Simulated nvidia-smi: the comma separated outputs and the list. */
#include "smi.h"

#include <stdio.h>
#include <string.h>

struct format {
    int header, units;
};

static int parse_format(const char *text, struct format *format) {
    char copy[128], *rest = copy, *part;
    int csv = 0;
    *format = (struct format){1, 1};
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    while ((part = strsep(&rest, ","))) {
        if (strcmp(part, "csv") == 0) csv = 1;
        else if (strcmp(part, "noheader") == 0) format->header = 0;
        else if (strcmp(part, "nounits") == 0) format->units = 0;
        else if (*part) csv = -100;
    }
    if (csv == 1) return 0;
    printf("Format must include \"csv\" and may include \"noheader\" and \"nounits\".\n");
    return SMI_BAD_ARGUMENT;
}

/* Splits "a,b" in place; returns the number of parts. */
static unsigned split(char *text, char **parts, unsigned room) {
    unsigned count = 0;
    char *part;
    while (count < room && (part = strsep(&text, ", ")))
        if (*part) parts[count++] = part;
    return count;
}

static void print_header(char **names, unsigned count, const struct format *format) {
    for (unsigned i = 0; i < count; i++) {
        const char *unit = smi_unit(names[i]);
        int with_unit = format->units && unit && *unit;
        printf("%s%s", i ? ", " : "", names[i]);
        if (with_unit) printf(" [%s]", unit);
    }
    printf("\n");
}

int smi_query(const struct gpu *gpus, unsigned count, const char *fields, const char *wanted) {
    char copy[2048], *names[64], value[SMI_VALUE];
    struct format format;
    int bad = parse_format(wanted, &format);
    if (bad) return bad;
    snprintf(copy, sizeof copy, "%s", fields);
    unsigned total = split(copy, names, 64);
    for (unsigned i = 0; i < total; i++) {
        if (smi_unit(names[i])) continue;
        printf("Field \"%s\" is not a valid field to query.\n\n", names[i]);
        return SMI_BAD_ARGUMENT;
    }
    if (format.header) print_header(names, total, &format);
    for (unsigned gpu = 0; gpu < count; gpu++) {
        for (unsigned i = 0; i < total; i++) {
            smi_value(&gpus[gpu], names[i], format.units, value);
            printf("%s%s", i ? ", " : "", value);
        }
        printf("\n");
    }
    return 0;
}

/* Simulated GPUs never list a process, so only the header can be printed. */
int smi_query_processes(const char *fields, const char *wanted) {
    static const char *const known[] = {"pid",         "process_name", "name",     "gpu_name",
                                        "gpu_bus_id",  "gpu_uuid",     "gpu_serial", "timestamp",
                                        "used_memory", "used_gpu_memory"};
    char copy[1024], *names[32];
    struct format format;
    int bad = parse_format(wanted, &format);
    if (bad) return bad;
    snprintf(copy, sizeof copy, "%s", fields);
    unsigned total = split(copy, names, 32);
    for (unsigned i = 0; i < total; i++) {
        int found = 0;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            found |= strcmp(known[k], names[i]) == 0;
        if (found) continue;
        printf("Field \"%s\" is not a valid field to query.\n\n", names[i]);
        return SMI_BAD_ARGUMENT;
    }
    for (unsigned i = 0; format.header && i < total; i++) {
        int memory = strncmp(names[i], "used_", 5) == 0 && format.units;
        printf("%s%s%s%s", i ? ", " : "", names[i], memory ? " [MiB]" : "",
               i + 1 == total ? "\n" : "");
    }
    return 0;
}

int smi_list(const struct gpu *gpus, unsigned count) {
    int result = 0;
    for (unsigned i = 0; i < count; i++) {
        char name[SMI_VALUE], uuid[SMI_VALUE];
        if (gpus[i].state != NVML_SUCCESS) {
            printf("Unable to determine the device handle for gpu %s: %s.  Reboot the system to "
                   "recover this GPU\n", gpus[i].bus_id, nvmlErrorString(gpus[i].state));
            result = (int)gpus[i].state;
            continue;
        }
        smi_value(&gpus[i], "name", 0, name);
        smi_value(&gpus[i], "uuid", 0, uuid);
        printf("GPU %u: %s (UUID: %s)\n", gpus[i].index, name, uuid);
        smi_list_mig(&gpus[i]);
    }
    return result;
}
