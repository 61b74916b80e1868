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
    int fault; /* stands after [faults] */
    double at; /* seconds since the epoch; known for faults */
    char key[40];
    char value[SIM_TEXT];
};

/* Recursive, because sim_sum() asks for values of the past while it holds the present still. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct entry *entries;
static size_t entry_count, entry_room;
static size_t horizon = SIZE_MAX; /* entries from here on have not happened yet, for sim_sum() */
static struct stat seen;          /* the file as it was last read */

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

/* The time of a fault, which its line ends with: " @ <milliseconds>". Lines without one, as driver
 * tools append them, happened with the line before, or with loading the driver. */
static double fault_time(char *value) {
    char *stamp = strstr(value, " @ ");
    if (stamp) {
        *stamp = '\0';
        return strtod(stamp + 3, NULL) / 1000;
    }
    if (entry_count && entries[entry_count - 1].fault) return entries[entry_count - 1].at;
    return sim_loaded_at();
}

static struct entry *new_entry(void) {
    if (entry_count == entry_room) {
        size_t room = entry_room ? 2 * entry_room : 64;
        struct entry *grown = realloc(entries, room * sizeof *entries);
        if (!grown) return NULL;
        entries = grown;
        entry_room = room;
    }
    return memset(&entries[entry_count], 0, sizeof *entries);
}

static void add_entry(char *key, char *value, int fault) {
    struct entry *entry = new_entry();
    if (!entry) return;
    if (fault) entry->at = fault_time(value);
    entry->gpu = SIM_ALL_GPUS;
    entry->fault = fault;
    if (isdigit((unsigned char)key[0]) && strchr(key, '.')) {
        entry->gpu = atoi(key);
        key = strchr(key, '.') + 1;
    }
    snprintf(entry->key, sizeof entry->key, "%s", key);
    snprintf(entry->value, sizeof entry->value, "%s", value);
    entry_count++;
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

/* The newest entry for exactly this GPU (or for all), past the horizon none. The lock is held. */
static const struct entry *newest(int gpu, const char *key, int faults_too) {
    for (size_t i = entry_count < horizon ? entry_count : horizon; i-- > 0;)
        if (entries[i].gpu == gpu && strcmp(entries[i].key, key) == 0 &&
            (faults_too || !entries[i].fault))
            return &entries[i];
    return NULL;
}

/* The entry in force: a fault that was set to "default" is over. The lock is held. */
static const struct entry *find(int gpu, const char *key) {
    const struct entry *entry = newest(gpu, key, 1);
    if (entry && entry->fault && strcmp(entry->value, "default") == 0)
        return newest(gpu, key, 0);
    return entry;
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

int sim_conf_open(void) {
    char path[512];
    return conf_path(path, sizeof path) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

double sim_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double sim_loaded_at(void) {
    uint64_t loaded = sim_number(SIM_ALL_GPUS, "loaded_at", 0);
    return loaded ? (double)loaded : sim_now();
}

double sim_set_at(int gpu, const char *key) {
    pthread_mutex_lock(&lock);
    const struct entry *entry = newest(gpu, key, 1);
    double at = entry && entry->fault ? entry->at : sim_loaded_at();
    pthread_mutex_unlock(&lock);
    return at;
}

double sim_sum(int gpu, double since, sim_piece piece, const void *context) {
    double sum = 0, from = since;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i <= entry_count; i++) {
        if (i < entry_count && (!entries[i].fault || entries[i].gpu != gpu)) continue;
        double until = i < entry_count ? entries[i].at : sim_now();
        if (until <= from) continue;
        horizon = i;
        sum += piece(gpu, from, until, context);
        from = until;
    }
    horizon = SIZE_MAX;
    pthread_mutex_unlock(&lock);
    return sum;
}
