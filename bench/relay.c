/*
 * A network link with a delay and losses, between this network namespace and another one.
 *
 *     relay HERE NAMESPACE THERE DELAY_US LOSS_PPM SEED
 *
 * Makes the TAP devices HERE (in this namespace) and THERE (in the namespace file NAMESPACE), and
 * passes Ethernet frames between them in order, each after DELAY_US microseconds; of a million
 * frames LOSS_PPM are lost, in each direction by themselves. Prints "ready" when both devices are
 * there; ends on SIGTERM or with its parent, and the devices end with it.
 *
 * It stands for tc netem, which many kernels of virtual machines and containers lack.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 1600
#define QUEUE 65536 /* frames on their way in one direction: 98 MB/s at 1 s */

struct frame {
    uint64_t due_ns;
    uint16_t length;
    unsigned char data[FRAME_MAX];
};

struct direction {
    int from, to;
    struct frame *queue;
    uint32_t head, tail; /* of QUEUE, a power of two: they may wrap */
};

static void die(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t seed;

static uint32_t random_ppm(void) { /* xorshift64: 0 to 999,999 */
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 20) % 1000000u);
}

static int open_tap(const char *name) {
    struct ifreq request = {0};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("/dev/net/tun");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, TUNSETIFF, &request) < 0) die(name);
    return fd;
}

/* Takes what has arrived; a frame that is lost or finds the queue full goes no further. */
static void take(struct direction *d, uint64_t delay_ns, uint32_t loss_ppm) {
    unsigned char lost[FRAME_MAX];
    for (;;) {
        struct frame *frame = &d->queue[d->head % QUEUE];
        int keep = d->head - d->tail < QUEUE && random_ppm() >= loss_ppm;
        ssize_t length = read(d->from, keep ? frame->data : lost, FRAME_MAX);
        if (length < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == EIO) return;
            die("read");
        }
        if (!keep) continue;
        frame->length = (uint16_t)length;
        frame->due_ns = now_ns() + delay_ns;
        d->head++;
    }
}

/* Delivers what is due; returns when the next frame is, or 0. */
static uint64_t deliver(struct direction *d) {
    while (d->tail != d->head) {
        struct frame *frame = &d->queue[d->tail % QUEUE];
        if (frame->due_ns > now_ns()) return frame->due_ns;
        if (write(d->to, frame->data, frame->length) < 0 && errno != EIO && errno != EAGAIN)
            die("write");
        d->tail++;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: relay HERE NAMESPACE THERE DELAY_US LOSS_PPM SEED\n");
        return 2;
    }
    uint64_t delay_ns = strtoull(argv[4], NULL, 10) * 1000u;
    uint32_t loss_ppm = (uint32_t)strtoul(argv[5], NULL, 10);
    seed = strtoull(argv[6], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1000); /* ns */
    /* A link does not get slower because the machines at its ends are busy. */
    struct sched_param priority = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) < 0)
        fprintf(stderr, "relay: no real-time priority: delays vary with load\n");

    int here = open_tap(argv[1]);
    int namespace = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) die(argv[2]);
    int there = open_tap(argv[3]);
    struct direction ways[2] = {{.from = here, .to = there}, {.from = there, .to = here}};
    for (int i = 0; i < 2; i++) {
        ways[i].queue = calloc(QUEUE, sizeof(struct frame));
        if (!ways[i].queue) die("memory");
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint64_t next = 0;
        for (int i = 0; i < 2; i++) {
            uint64_t due = deliver(&ways[i]);
            if (due && (!next || due < next)) next = due;
        }
        struct timespec wait = {0, 0}, *until = NULL;
        if (next) {
            uint64_t now = now_ns(), left = next > now ? next - now : 0;
            wait.tv_sec = (time_t)(left / 1000000000u);
            wait.tv_nsec = (long)(left % 1000000000u);
            until = &wait;
        }
        struct pollfd polled[2] = {{here, POLLIN, 0}, {there, POLLIN, 0}};
        if (ppoll(polled, 2, until, NULL) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < 2; i++)
            if (polled[i].revents & POLLIN) take(&ways[i], delay_ns, loss_ppm);
    }
}
