// build:
// deterministic
// loses
// Proves: a write to a pipe that nobody reads raises SIGPIPE once, and a process whose handler raises it again,
// with its own meaning, ends by it (as sort does).
#include "guest.h"
#include <string.h>
#include <sys/wait.h>

static volatile int came;
static void count(int s) { (void)s; came++; }
static void ends(int s) {
    signal(s, SIG_DFL);
    raise(s);
}

/// A pipe that nobody reads.
static int broken(void) {
    int p[2];
    if (pipe(p)) exit(3);
    close(p[0]);
    return p[1];
}

int main(void) {
    signal(SIGPIPE, count);
    for (int i = 1; i <= 20; i++) {
        int fd = broken();
        long wrote = write(fd, "x", 1);
        if (wrote != -1 || errno != EPIPE || came != i)
            printf("%d: wrote %ld, errno %d, %d signals\n", i, wrote, errno, came);
        close(fd);
    }
    printf("%d signals\n", came);
    fflush(stdout);
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct sigaction a;
            memset(&a, 0, sizeof a);
            a.sa_handler = ends;
            sigaction(SIGPIPE, &a, 0);
            if (i % 2) raise(SIGPIPE);
            else write(broken(), "x", 1);
            _exit(7);
        }
        int status;
        if (waitpid(child, &status, 0) != child) return 1;
        printf("child: signal %d, status %d\n", WTERMSIG(status), WEXITSTATUS(status));
    }
    printf("GUEST-OK sig_broken_pipe\n");
    return 0;
}
