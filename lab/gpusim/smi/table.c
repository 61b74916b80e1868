/* Simulated nvidia-smi: the summary table and the full listing. */
#include "smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIMULATED "SIMULATED by the gpuboot lab: no NVIDIA GPU or driver is behind this output"
#define WIDE "+-----------------------------------------------------------------------------------------+"
#define COLUMNS "+-----------------------------------------+------------------------+----------------------+"

static void print_heading(void) {
    char driver[SMI_VALUE] = "?", stamp[64], cuda_text[16];
    int cuda = 0;
    time_t now = time(NULL);
    struct tm local;
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    snprintf(cuda_text, sizeof cuda_text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    strftime(stamp, sizeof stamp, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    printf("%s       \n" WIDE "\n", stamp);
    printf("| NVIDIA-SMI %-22.22s Driver Version: %-14.14s CUDA Version: %-8.8s |\n",
           SIM_DRIVER_VERSION, driver, cuda_text);
    printf("| %-87.87s |\n" COLUMNS "\n", SIMULATED);
    printf("| GPU  Name                 Persistence-M | Bus-Id          Disp.A |"
           " Volatile Uncorr. ECC |\n");
    printf("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage |"
           " GPU-Util  Compute M. |\n");
    printf("|                                         |                        |"
           "               MIG M. |\n");
    printf("|=========================================+========================+"
           "======================|\n");
}

static void print_row(const struct gpu *gpu) {
    char name[SMI_VALUE], persistence[SMI_VALUE], ecc[SMI_VALUE], celsius[SMI_VALUE];
    char state[SMI_VALUE], drawn[SMI_VALUE], limit[SMI_VALUE], used[SMI_VALUE], total[SMI_VALUE];
    char load[SMI_VALUE];
    smi_value(gpu, "name", 0, name);
    smi_value(gpu, "persistence_mode", 0, persistence);
    smi_value(gpu, "ecc.errors.uncorrected.volatile.total", 0, ecc);
    smi_value(gpu, "temperature.gpu", 0, celsius);
    smi_value(gpu, "pstate", 0, state);
    smi_value(gpu, "power.draw", 0, drawn);
    smi_value(gpu, "power.limit", 0, limit);
    smi_value(gpu, "memory.used", 0, used);
    smi_value(gpu, "memory.total", 0, total);
    smi_value(gpu, "utilization.gpu", 0, load);
    printf("| %3u  %-29.29s %4s | %18.18s Off | %20.20s |\n", gpu->index, name,
           persistence[0] == 'E' ? "On" : "Off", gpu->bus_id, ecc);
    printf("| N/A  %3.3sC    %-3.3s         %5dW / %4dW | %7.7sMiB / %6.6sMiB | %6.6s%%      Default |\n",
           celsius, state, atoi(drawn), atoi(limit), used, total, load);
    printf("|                                         |                        |"
           "                  N/A |\n" COLUMNS "\n");
}

int smi_table(const struct gpu *gpus, unsigned count) {
    print_heading();
    for (unsigned i = 0; i < count; i++) print_row(&gpus[i]);
    printf("\n" WIDE "\n");
    printf("| %-87s |\n", "Processes:");
    printf("| %-87s |\n", " GPU   GI   CI              PID   Type   Process name"
                          "                        GPU Memory");
    printf("| %-87s |\n", "       ID   ID                                       "
                          "                        Usage     ");
    printf("|========================================================================"
           "=================|\n");
    printf("| %-87s |\n" WIDE "\n", " No running processes found");
    return 0;
}

static void print_fact(const struct gpu *gpu, const char *indent, const char *label,
                       const char *field) {
    char value[SMI_VALUE], padded[64];
    smi_value(gpu, field, 1, value);
    snprintf(padded, sizeof padded, "%s%s", indent, label);
    printf("%-58s: %s\n", padded, strcmp(value, "[N/A]") == 0 ? "N/A" : value);
}

static void print_full(const struct gpu *gpu) {
    static const char *const facts[][3] = {
        {"    ", "Product Name", "name"},
        {"    ", "Persistence Mode", "persistence_mode"},
        {"    ", "Serial Number", "serial"},
        {"    ", "GPU UUID", "uuid"},
        {"    ", "VBIOS Version", "vbios_version"},
        {"    ", "Current MIG Mode", "mig.mode.current"},
        {"    ", "Bus Id", "pci.bus_id"},
        {"    ", "Device Id", "pci.device_id"},
        {"    ", "PCIe Generation Current", "pcie.link.gen.current"},
        {"    ", "PCIe Link Width Current", "pcie.link.width.current"},
        {"    ", "Performance State", "pstate"},
        {"    ", "FB Memory Total", "memory.total"},
        {"    ", "FB Memory Used", "memory.used"},
        {"    ", "GPU Utilization", "utilization.gpu"},
        {"    ", "ECC Mode Current", "ecc.mode.current"},
        {"    ", "ECC Volatile Uncorrectable", "ecc.errors.uncorrected.volatile.total"},
        {"    ", "Remapped Rows Uncorrectable", "remapped_rows.uncorrectable"},
        {"    ", "GPU Current Temp (C)", "temperature.gpu"},
        {"    ", "Power Draw", "power.draw"},
        {"    ", "Current Power Limit", "power.limit"},
        {"    ", "SM Clock", "clocks.sm"},
    };
    printf("GPU %s\n", gpu->bus_id);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        print_fact(gpu, facts[i][0], facts[i][1], facts[i][2]);
    smi_full_mig(gpu);
    printf("%-58s: None\n\n", "    Processes");
}

int smi_full(const struct gpu *gpus, unsigned count) {
    char driver[SMI_VALUE] = "?", stamp[64];
    int cuda = 0;
    time_t now = time(NULL);
    struct tm local;
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    strftime(stamp, sizeof stamp, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    printf("\n==============NVSMI LOG==============\n\n%-50s: " SIMULATED "\n", "Origin");
    printf("%-50s: %s\n%-50s: %s\n", "Timestamp", stamp, "Driver Version", driver);
    printf("%-50s: %d.%d\n\n", "CUDA Version", cuda / 1000, cuda % 1000 / 10);
    printf("%-50s: %u\n", "Attached GPUs", count);
    for (unsigned i = 0; i < count; i++) print_full(&gpus[i]);
    return 0;
}
