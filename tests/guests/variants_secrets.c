// build: -fstack-protector-all -O1
// delayed: short
// Proves: what the kernel gives by chance (AT_RANDOM) is the same for whoever asks, in a constructor, in main, in a child and after an
// exec, although what guards return addresses and what glibc keeps is each replica's own; a thread that computes with
// such words on its stack, whole and in parts, in a jump buffer and in registers, is met for a signal; and what glibc
// has kept leads where it should (setjmp, atexit, a thread's destructors).
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <sys/wait.h>

static unsigned char at_first[16];
static volatile sig_atomic_t signals;
static int destroyed;
static volatile uint64_t sink;

static __attribute__((constructor)) void begin(void) { memcpy(at_first, (void *)getauxval(AT_RANDOM), 16); }

static void check_random(void) { CHECK(!memcmp(at_first, (void *)getauxval(AT_RANDOM), 16)); }

static void on_alarm(int n) {
    (void)n;
    signals++;
}

// Leaves canaries below its caller's frame.
static __attribute__((noinline)) uint64_t deep(int depth, uint64_t x) {
    volatile char room[24];
    room[depth % 24] = (char)x;
    return depth == 0 ? x : deep(depth - 1, x * 3 + 1) + (uint64_t)room[depth % 24];
}

// Its frame lies where those were: some of their bytes are left in it.
static __attribute__((noinline)) uint64_t compute(int wanted) {
    _Alignas(16) char left[600];
    jmp_buf environment;
    volatile uint64_t x = 1;
    for (unsigned i = 2; i < sizeof left; i += 16) // (of an address those bytes stay that say whether it moves)
        ((volatile char *)left)[i] = (char)i;
    if (setjmp(environment) == 0) {
        while (signals < wanted)
            x = (x + 1) & 0xff;
        longjmp(environment, 1);
    }
    return x + (uint64_t)((volatile char *)left)[18];
}

static void interrupted(int wanted) {
    struct itimerval often = {{0, 30000}, {0, 30000}}, never = {{0, 0}, {0, 0}};
    signals = 0;
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    sink = deep(20, 7);
    sink = compute(wanted);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static void destroy(void *word) { ++*(int *)word; }

static void *thread(void *unused) {
    (void)unused;
    __cxa_thread_atexit_impl(destroy, &destroyed, &__dso_handle);
    sink = deep(9, 3);
    return NULL;
}

static void last(void) { guest_ok("variants_secrets"); }

int main(int argc, char **argv) {
    int is_short = argc > 1 && !strcmp(argv[1], "short");
    check_random();
    if (argc > 1 && !strcmp(argv[1], "again")) {
        for (int i = 0; i < 16; i++)
            printf("%02x", at_first[i]);
        printf("\n");
        return 0;
    }
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    interrupted(is_short ? 1 : 3);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
        CHECK(pthread_join(t, NULL) == 0);
    }
    CHECK(destroyed == 3);
    for (int again = 0; again < 2; again++) {
        pid_t child = fork();
        if (child == 0) {
            check_random();
            if (again)
                execl("/proc/self/exe", argv[0], "again", NULL);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 40; i++)
        atexit(i == 0 ? last : check_random);
    return 0;
}
