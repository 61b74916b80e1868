/* Simulated libcuda: work takes time, and how much of the time a GPU worked is told to all.
 *
 * A stream is known by the moment at which all that was queued in it is done, and an event by that of
 * its stream when it was recorded. */
#include "state.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define TELL_EVERY_S 0.5

struct CUstream_st {
    double done_at;
    struct CUstream_st *next;
};

struct CUevent_st {
    double done_at;
};

struct worked {
    double queued;  /* seconds of work since the process began */
    double done_at; /* when the last of it is done */
    double told;    /* seconds of it that were done when it was last told */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st null_stream, *streams = &null_stream;
static struct worked work[SIM_MAX_GPUS][SIM_ALLOCATED];
static int telling;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_for(double seconds) {
    struct timespec time = {(time_t)seconds, 0};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    if (seconds > 0) nanosleep(&time, NULL);
}

/* Called with the lock, so many seconds after the last time. */
static void tell(int gpu, enum sim_work what, double at, double since) {
    struct worked *one = &work[gpu][what];
    double waits = one->done_at > at ? one->done_at - at : 0, done = one->queued - waits;
    double percent = 100 * (done - one->told) / since;
    one->told = done;
    sim_work_tell(gpu, what, percent > 100 ? 100 : (unsigned)(percent + 0.5));
}

static void *keep_telling(void *unused UNUSED) {
    for (double last = now();;) {
        sleep_for(TELL_EVERY_S);
        double at = now();
        pthread_mutex_lock(&lock);
        for (int gpu = 0; gpu < SIM_MAX_GPUS; gpu++)
            for (int what = 0; what < SIM_ALLOCATED; what++)
                tell(gpu, (enum sim_work)what, at, at - last);
        pthread_mutex_unlock(&lock);
        last = at;
    }
    return NULL;
}

static double later(double done_at, double at, double seconds) {
    return (done_at > at ? done_at : at) + seconds;
}

void sim_cuda_queue(int gpu, CUstream stream, enum sim_work what, double seconds) {
    pthread_t thread;
    double at = now();
    struct worked *one = &work[gpu][what];
    if (!stream) stream = &null_stream;
    pthread_mutex_lock(&lock);
    stream->done_at = later(stream->done_at, at, seconds);
    one->done_at = later(one->done_at, at, seconds);
    one->queued += seconds;
    if (!telling) telling = pthread_create(&thread, NULL, keep_telling, NULL) == 0;
    pthread_mutex_unlock(&lock);
}

static double done_at(CUstream stream) {
    pthread_mutex_lock(&lock);
    double moment = (stream ? stream : &null_stream)->done_at;
    pthread_mutex_unlock(&lock);
    return moment;
}

CUresult sim_cuda_wait_all(void) {
    double last = 0;
    pthread_mutex_lock(&lock);
    for (const struct CUstream_st *one = streams; one; one = one->next)
        if (one->done_at > last) last = one->done_at;
    pthread_mutex_unlock(&lock);
    sleep_for(last - now());
    return CUDA_SUCCESS;
}

CUDA_API cuStreamCreate(CUstream *stream, unsigned flags UNUSED) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!stream || !(*stream = calloc(1, sizeof **stream))) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    (*stream)->next = streams;
    streams = *stream;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUDA_API cuStreamSynchronize(CUstream stream) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    sleep_for(done_at(stream) - now());
    return sim_cuda_context(&gpu);
}

CUDA_API cuEventCreate(CUevent *event, unsigned flags UNUSED) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    return event && (*event = calloc(1, sizeof **event)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API cuEventRecord(CUevent event, CUstream stream) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    event->done_at = done_at(stream);
    return CUDA_SUCCESS;
}

CUDA_API cuEventSynchronize(CUevent event) {
    int gpu;
    TRY(sim_cuda_context(&gpu));
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    sleep_for(event->done_at - now());
    return sim_cuda_context(&gpu);
}

CUDA_API cuEventDestroy_v2(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}
