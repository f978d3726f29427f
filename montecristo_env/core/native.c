/* What the library has besides the kernels: whether it runs on this processor, and threads that share a batch.

   Python has the lock of its interpreter to wait for before each call; these threads never do. */

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#define EXPORT __declspec(dllexport)
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Condition;
#define NEW_LOCK SRWLOCK_INIT
#define NEW_CONDITION CONDITION_VARIABLE_INIT
#define lock(l) AcquireSRWLockExclusive(l)
#define try_lock(l) (TryAcquireSRWLockExclusive(l) != 0)
#define unlock(l) ReleaseSRWLockExclusive(l)
#define sleep_on(c, l) SleepConditionVariableSRW(c, l, INFINITE, 0)
#define wake_all(c) WakeAllConditionVariable(c)
#else
#include <pthread.h>
#include <signal.h>
#define EXPORT __attribute__((visibility("default")))
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Condition;
#define NEW_LOCK PTHREAD_MUTEX_INITIALIZER
#define NEW_CONDITION PTHREAD_COND_INITIALIZER
#define lock(l) pthread_mutex_lock(l)
#define try_lock(l) (pthread_mutex_trylock(l) == 0)
#define unlock(l) pthread_mutex_unlock(l)
#define sleep_on(c, l) pthread_cond_wait(c, l)
#define wake_all(c) pthread_cond_broadcast(c)
#endif

/* --- Threads ---------------------------------------------------------------------------------------------------- */

typedef int64_t (*EntryPoint)(const int64_t *arguments);

enum { MOST_HELPERS = 63, MOST_WORDS = 128, SPINS = 4000 /* some 50 µs, in which a loop of steps comes back */ };

static struct {
    EntryPoint function;
    const int64_t *arguments; /* but the last two, the rows where a part begins and ends */
    int64_t words, size, parts;
    int64_t *results;         /* of each part */
    _Atomic int64_t next;     /* the first part that nobody has begun */
} job;

static Lock in_use = NEW_LOCK, guard = NEW_LOCK; /* by a call of share_rows; of what follows */
static Condition work_to_do = NEW_CONDITION, work_done = NEW_CONDITION;
static int64_t helpers, wanted;          /* threads that exist; that may still join the job */
static _Atomic int64_t job_number, busy; /* the latest job; helpers that are at work on it */

static inline void pause_a_moment(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void do_parts(void) {
    int64_t arguments[MOST_WORDS];
    memcpy(arguments, job.arguments, job.words * sizeof *arguments);
    for (;;) {
        int64_t part = atomic_fetch_add(&job.next, 1);
        if (part >= job.parts) return;
        arguments[job.words] = job.size * part / job.parts;
        arguments[job.words + 1] = job.size * (part + 1) / job.parts;
        job.results[part] = job.function(arguments);
    }
}

static void help(int64_t seen) {
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&job_number) == seen; i++) pause_a_moment();
        lock(&guard);
        while (atomic_load(&job_number) == seen) sleep_on(&work_to_do, &guard);
        seen = atomic_load(&job_number);
        int64_t joins = wanted > 0;
        wanted -= joins;
        atomic_fetch_add(&busy, joins);
        unlock(&guard);
        if (!joins) continue;
        do_parts();
        lock(&guard);
        if (atomic_fetch_sub(&busy, 1) == 1) wake_all(&work_done);
        unlock(&guard);
    }
}

#ifdef _WIN32
static DWORD WINAPI begin_helping(void *seen) {
    help((int64_t)(intptr_t)seen);
    return 0;
}
static int64_t start_helper(void) {
    HANDLE thread = CreateThread(NULL, 0, begin_helping, (void *)(intptr_t)job_number, 0, NULL);
    return thread != NULL && CloseHandle(thread);
}
#else
static void *begin_helping(void *seen) {
    help((int64_t)(intptr_t)seen);
    return NULL;
}
static int64_t start_helper(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for Python's threads */
    int failed = pthread_create(&thread, NULL, begin_helping, (void *)(intptr_t)job_number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed && pthread_detach(thread) == 0;
}
#endif

/* Calls function(arguments, begin, end) for parts of the rows, in several threads at once. When it returns, nobody is at
   work. If another thread has the helpers, this one does everything. */
EXPORT int64_t share_rows(const int64_t *call) {
    int64_t threads = call[0], size = call[1], parts = call[2], words = call[5];
    if (words > MOST_WORDS - 2) return -1;
    int64_t alone = !try_lock(&in_use);
    if (alone) {
        int64_t arguments[MOST_WORDS];
        memcpy(arguments, call + 6, words * sizeof *arguments);
        for (int64_t part = 0; part < parts; part++) {
            arguments[words] = size * part / parts;
            arguments[words + 1] = size * (part + 1) / parts;
            ((int64_t *)(intptr_t)call[3])[part] = ((EntryPoint)(intptr_t)call[4])(arguments);
        }
        return 0;
    }
    while (helpers < threads - 1 && helpers < MOST_HELPERS && start_helper()) helpers++;
    lock(&guard);
    job.size = size, job.parts = parts, job.results = (int64_t *)(intptr_t)call[3];
    job.function = (EntryPoint)(intptr_t)call[4], job.words = words, job.arguments = call + 6;
    atomic_store(&job.next, 0);
    wanted = threads - 1;
    atomic_fetch_add(&job_number, 1);
    wake_all(&work_to_do);
    unlock(&guard);
    do_parts();
    lock(&guard);
    wanted = 0; /* who wakes now is too late */
    unlock(&guard);
    for (int i = 0; i < SPINS && atomic_load(&busy); i++) pause_a_moment();
    lock(&guard);
    while (atomic_load(&busy)) sleep_on(&work_done, &guard);
    unlock(&guard);
    unlock(&in_use);
    return 0;
}

/* A forked child has none of its parent's threads. */
EXPORT void forget_helpers(void) {
    Lock new_lock = NEW_LOCK;
    Condition new_condition = NEW_CONDITION;
    in_use = guard = new_lock;
    work_to_do = work_done = new_condition;
    helpers = wanted = busy = 0;
}

/* --- The processor ---------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void cpuid(unsigned leaf, unsigned sub, unsigned *r) {
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}
EXPORT int supports_v3(void) { /* x86-64-v3: AVX2, BMI1, BMI2, F16C, FMA, LZCNT, MOVBE, and a system that saves YMM */
    unsigned r[4], low, high;
    cpuid(0, 0, r);
    if (r[0] < 7) return 0;
    cpuid(1, 0, r);
    unsigned wanted = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29 | 1u << 23 | 1u << 20 | 1u << 13;
    if ((r[2] & wanted) != wanted) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return 0;
    cpuid(7, 0, r);
    wanted = 1u << 3 | 1u << 5 | 1u << 8;
    if ((r[1] & wanted) != wanted) return 0;
    cpuid(0x80000000u, 0, r);
    if (r[0] < 0x80000001u) return 0;
    cpuid(0x80000001u, 0, r);
    return r[2] >> 5 & 1;
}
#else
EXPORT int supports_v3(void) { return 0; }
#endif
