/* Simulated GPU state: reading and appending the configuration. See simconf.h. */
#define _GNU_SOURCE
#include "simconf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* /lib/firmware too: in an image whose /lib is a folder of its own, that is where it is mounted. */
#define CONF_GLOB "/{usr/lib,lib}/firmware/nvidia/*/gsp_sim.bin"

struct entry {
    int gpu;
    int fault;   /* stands after [faults] */
    int cleared; /* undone by a later "clear" */
    char key[40];
    char value[SIM_TEXT];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t entry_count, entry_room;
static struct stat seen; /* the file as it was last read */

static int conf_path(char *out, size_t size) {
    const char *override = getenv("SIM_GPU_CONF");
    if (override) {
        snprintf(out, size, "%s", override);
        return 0;
    }
    glob_t found;
    int result = -1;
    if (glob(CONF_GLOB, GLOB_BRACE, NULL, &found) == 0) {
        snprintf(out, size, "%s", found.gl_pathv[0]);
        result = 0;
    }
    globfree(&found);
    return result;
}

static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = '\0';
    return text;
}

/* Set by driver tools (nvidia-smi, fabric manager), so clearing faults leaves them alone. */
static int is_setting(const char *key) {
    return strcmp(key, "persistence") == 0 || strcmp(key, "fabric") == 0;
}

static void clear_faults(const char *which) {
    int all = strcmp(which, "all") == 0, gpu = atoi(which);
    for (size_t i = 0; i < entry_count; i++) {
        struct entry *entry = &entries[i];
        if (entry->fault && !is_setting(entry->key) && (all || entry->gpu == gpu))
            entry->cleared = 1;
    }
}

static void add_entry(char *key, const char *value, int fault) {
    if (fault && strcmp(key, "clear") == 0) {
        clear_faults(value);
        return;
    }
    if (entry_count == entry_room) {
        size_t room = entry_room ? 2 * entry_room : 64;
        struct entry *grown = realloc(entries, room * sizeof *entries);
        if (!grown) return;
        entries = grown;
        entry_room = room;
    }
    struct entry *entry = &entries[entry_count++];
    memset(entry, 0, sizeof *entry);
    entry->gpu = SIM_ALL_GPUS;
    entry->fault = fault;
    if (isdigit((unsigned char)key[0]) && strchr(key, '.')) {
        entry->gpu = atoi(key);
        key = strchr(key, '.') + 1;
    }
    snprintf(entry->key, sizeof entry->key, "%s", key);
    snprintf(entry->value, sizeof entry->value, "%s", value);
}

static void read_conf(FILE *file) {
    char line[256];
    int fault = 0;
    entry_count = 0;
    while (fgets(line, sizeof line, file)) {
        char *text = trim(line), *equals = strchr(text, '=');
        if (strcmp(text, "[faults]") == 0) fault = 1;
        if (text[0] == '#' || !equals) continue;
        *equals = '\0';
        add_entry(trim(text), trim(equals + 1), fault);
    }
}

static int unchanged(const struct stat *now) {
    return now->st_ino == seen.st_ino && now->st_dev == seen.st_dev &&
           now->st_size == seen.st_size && now->st_mtim.tv_sec == seen.st_mtim.tv_sec &&
           now->st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
}

void sim_refresh(void) {
    char path[512];
    struct stat now;
    pthread_mutex_lock(&lock);
    FILE *file = conf_path(path, sizeof path) == 0 ? fopen(path, "re") : NULL;
    if (!file || fstat(fileno(file), &now) != 0) {
        entry_count = 0;
        memset(&seen, 0, sizeof seen);
    } else if (!unchanged(&now)) {
        read_conf(file);
        seen = now;
    }
    if (file) fclose(file);
    pthread_mutex_unlock(&lock);
}

/* The newest entry in force for exactly this GPU (or for all). The lock is held. */
static const struct entry *find(int gpu, const char *key) {
    for (size_t i = entry_count; i-- > 0;)
        if (!entries[i].cleared && entries[i].gpu == gpu && strcmp(entries[i].key, key) == 0)
            return &entries[i];
    return NULL;
}

static int lookup(int gpu, const char *key, char out[SIM_TEXT]) {
    pthread_mutex_lock(&lock);
    const struct entry *entry = gpu == SIM_ALL_GPUS ? NULL : find(gpu, key);
    if (!entry) entry = find(SIM_ALL_GPUS, key);
    if (entry) memcpy(out, entry->value, SIM_TEXT);
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

void sim_text(int gpu, const char *key, const char *fallback, char out[SIM_TEXT]) {
    if (!lookup(gpu, key, out)) snprintf(out, SIM_TEXT, "%s", fallback);
}

uint64_t sim_number(int gpu, const char *key, uint64_t fallback) {
    char value[SIM_TEXT];
    return lookup(gpu, key, value) ? strtoull(value, NULL, 0) : fallback;
}

/* The n-th entry, cleared or not, that sets the GPU's key as a fault; the lock is held. */
static const struct entry *nth_event(int gpu, const char *key, unsigned n) {
    for (size_t i = 0; i < entry_count; i++)
        if (entries[i].fault && entries[i].gpu == gpu && strcmp(entries[i].key, key) == 0 && !n--)
            return &entries[i];
    return NULL;
}

unsigned sim_event_count(int gpu, const char *key) {
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    while (nth_event(gpu, key, count)) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

uint64_t sim_event(int gpu, const char *key, unsigned n) {
    pthread_mutex_lock(&lock);
    const struct entry *entry = nth_event(gpu, key, n);
    uint64_t value = entry ? strtoull(entry->value, NULL, 0) : 0;
    pthread_mutex_unlock(&lock);
    return value;
}

int sim_append(int gpu, const char *key, uint64_t value) {
    char path[512], line[128];
    if (conf_path(path, sizeof path) != 0) {
        errno = ENOENT;
        return -1;
    }
    int length = snprintf(line, sizeof line, "%d.%s = %" PRIu64 "\n", gpu, key, value);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t written = write(fd, line, (size_t)length);
    int saved = errno;
    close(fd);
    errno = saved;
    return written == length ? 0 : -1;
}

static int device_node(const char *name) {
    const char *folder = getenv("SIM_GPU_DEV");
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/dev", name);
    return stat(path, &status) == 0;
}

enum sim_driver sim_driver_state(void) {
    char loaded[SIM_TEXT];
    pthread_mutex_lock(&lock);
    int empty = entry_count == 0;
    pthread_mutex_unlock(&lock);
    /* A configuration left from before a reboot does not count: the nodes come with loading. */
    if (empty || !device_node("nvidiactl")) return SIM_DRIVER_NOT_LOADED;
    sim_text(SIM_ALL_GPUS, "driver_version", "none", loaded);
    return strcmp(loaded, SIM_DRIVER_VERSION) == 0 ? SIM_DRIVER_READY : SIM_DRIVER_MISMATCH;
}

unsigned sim_gpu_count(void) {
    uint64_t count = sim_number(SIM_ALL_GPUS, "count", 0);
    return count > SIM_MAX_GPUS ? SIM_MAX_GPUS : (unsigned)count;
}

int sim_gpu_visible(unsigned gpu) {
    char name[32];
    snprintf(name, sizeof name, "nvidia%u", gpu);
    return device_node(name);
}

void sim_gpu_uuid(unsigned gpu, char out[SIM_TEXT]) {
    char made[SIM_TEXT];
    unsigned seed = (unsigned)sim_number(SIM_ALL_GPUS, "uuid_seed", 0);
    snprintf(made, sizeof made, "GPU-%08x-5157-4c6c-8abc-%012x", seed, gpu);
    sim_text((int)gpu, "uuid", made, out);
}

unsigned sim_gpu_bus(unsigned gpu) {
    return 0x10 + 0x0c * gpu;
}

unsigned sim_gpu_load(unsigned gpu) {
    const unsigned period = 120; /* seconds; each GPU is 15 s behind the one before */
    unsigned at = ((unsigned)time(NULL) + 15 * gpu) % period;
    unsigned percent = at < period / 2 ? at * 200 / period : (period - at) * 200 / period;
    unsigned peak = (unsigned)sim_number((int)gpu, "util_max", 0);
    unsigned load = (unsigned)sim_number((int)gpu, "util", percent * peak / 100);
    return load > 100 ? 100 : load;
}
