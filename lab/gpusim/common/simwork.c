/* What processes do on the simulated GPUs, told by locks. See simwork.h. */
#define _GNU_SOURCE
#include "simwork.h"

#include "simconf.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define BASE (1LL << 40)
#define ROOM (1LL << 17) /* values from 1 up to it */

static off_t first_byte(int gpu, enum sim_work what) {
    return BASE + ((off_t)gpu * SIM_WORKS + what) * ROOM;
}

/* Locks of an open file: closing another descriptor of it, as sim_refresh() does, ends none. */
static int set_lock(int file, short type, off_t at) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &lock);
}

/* The sum of what is told from `at` to before `end`. Which lock of several is answered is not said. */
static unsigned told(int file, off_t first, off_t at, off_t end) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = end - at};
    if (at >= end || fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
    return (unsigned)(lock.l_start - first) + told(file, first, at, lock.l_start) +
           told(file, first, lock.l_start + 1, end);
}

unsigned sim_work(int gpu, enum sim_work what) {
    int file = sim_conf_open();
    if (file < 0) return 0;
    off_t first = first_byte(gpu, what);
    unsigned sum = told(file, first, first + 1, first + ROOM);
    close(file);
    return what != SIM_ALLOCATED && sum > 100 ? 100 : sum;
}

static int told_by = -1; /* a file as long as the process lives: closing it ends its locks */

/* Called with the lock. */
static void change(int gpu, enum sim_work what, unsigned value, unsigned before) {
    off_t first = first_byte(gpu, what);
    if (told_by < 0) told_by = sim_conf_open();
    if (told_by < 0) return;
    if (value) set_lock(told_by, F_RDLCK, first + value);
    if (before) set_lock(told_by, F_UNLCK, first + before);
}

void sim_work_tell(int gpu, enum sim_work what, unsigned value) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned before[SIM_MAX_GPUS][SIM_WORKS];
    if (value >= ROOM) value = ROOM - 1;
    pthread_mutex_lock(&lock);
    if (before[gpu][what] != value) change(gpu, what, value, before[gpu][what]);
    before[gpu][what] = value;
    pthread_mutex_unlock(&lock);
}
