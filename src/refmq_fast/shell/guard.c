/* See guard.h. The one place of the engine with state of the whole process: a signal has one handler. */
#define _GNU_SOURCE
#include "guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* Where a thread goes on that meets the signal; NULL outside of a copy. The storage is there from a thread's beginning, so
 * that the handler allocates nothing. */
static _Thread_local sigjmp_buf *volatile landing __attribute__((tls_model("initial-exec")));

static struct sigaction others;
static bool is_installed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    if (landing != NULL) {
        /* A jump out of a handler restores no mask. */
        (void)pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(*landing, 1);
    }
    if ((others.sa_flags & SA_SIGINFO) != 0) {
        others.sa_sigaction(number, info, context);
    } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
        others.sa_handler(number);
    } else {
        (void)sigaction(SIGBUS, &others, NULL); /* the read is tried again, and ends the process as it would have */
    }
}

static void install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&action.sa_mask);
    is_installed = sigaction(SIGBUS, &action, &others) == 0;
}

bool rmq_guard_install(void)
{
    return pthread_once(&once, install) == 0 && is_installed;
}

bool rmq_guarded_copy(uint8_t *to, const uint8_t *from, size_t length)
{
    sigjmp_buf here;
    bool is_read = true;

    landing = &here;
    if (sigsetjmp(here, 0) == 0) {
        memcpy(to, from, length);
    } else {
        is_read = false;
    }
    landing = NULL;
    return is_read;
}
