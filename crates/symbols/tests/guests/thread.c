// Its second thread stops the process, and may itself get as far as its pause.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

__attribute__((noinline)) void *worker(void *argument) {
    kill(getpid(), SIGSTOP);
    for (;;) pause();
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_join(thread, 0);
    return 0;
}
