/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to the program around the library; see host_state.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE__
#include <immintrin.h>
#endif

#include "tests/host_state.h"

#ifdef __SSE__
#define FLAGS 0x3fu
#define FTZ_DAZ 0x8040u
#define MASKS 0x1f80u
#endif

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (d == NULL)
        return -1;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

void host_default_handlers(void)
{
    static const int deadly[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        signal(deadly[i], SIG_DFL);
}

int host_count_files(void)
{
    return count_entries("/proc/self/fd");
}

int host_count_threads(void)
{
    return count_entries("/proc/self/task");
}

extern char **environ;

static uint64_t hash_environment(void)
{
    uint64_t h = (uint64_t)(uintptr_t)environ;
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        h = (h ^ (uint64_t)(uintptr_t)*e) * UINT64_C(0x100000001b3);
        for (const char *p = *e; *p != '\0'; p++)
            h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    }
    return h;
}

static void look_at_modes(host_state *s)
{
    s->rounding = fegetround();
#ifdef __SSE__
    const unsigned all = _mm_getcsr();
    unsigned short x87;
    __asm__ __volatile__("fnstcw %0" : "=m"(x87));
    s->modes = all & ~FLAGS;
    s->flags = all & FLAGS;
    s->x87 = x87;
#else
    s->flags = (unsigned)fetestexcept(FE_ALL_EXCEPT);
#endif
}

static void look_at_openmp(host_state *s)
{
#ifdef _OPENMP
    omp_sched_t kind;
    s->omp[0] = omp_get_max_threads();
    s->omp[1] = omp_get_dynamic();
    s->omp[2] = omp_get_max_active_levels();
    omp_get_schedule(&kind, &s->omp[3]);
    s->omp[4] = (int)kind;
    s->omp[5] = omp_get_thread_limit();
    s->omp[6] = omp_get_level();
    s->omp[7] = omp_get_num_threads();
#else
    (void)s;
#endif
}

void host_state_look(host_state *s)
{
    memset(s, 0, sizeof *s);
    look_at_modes(s); /* before anything else moves its flags */
    const char *locale = setlocale(LC_ALL, NULL);
    snprintf(s->locale, sizeof s->locale, "%s", locale);
    s->thread_locale = (const void *)uselocale((locale_t)0);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    for (int i = 1; i < HOST_SIGNALS; i++)
        sigaction(i, NULL, &s->actions[i]); /* two belong to the C library */
    sigaltstack(NULL, &s->stack);
    look_at_openmp(s);
    s->umask = (unsigned)umask(0);
    umask((mode_t)s->umask);
    if (getcwd(s->folder, sizeof s->folder) == NULL)
        s->folder[0] = '\0';
    s->environment = hash_environment();
    s->n_files = host_count_files();
}

/* The C library keeps more bits than there are signals, and sets not all. */
static bool same_set(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < HOST_SIGNALS; i++) {
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    }
    return true;
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags &&
           same_set(&a->sa_mask, &b->sa_mask);
}

static const char *signals_differ(const host_state *a, const host_state *b)
{
    if (!same_set(&a->mask, &b->mask))
        return "the signal mask";
    for (int i = 1; i < HOST_SIGNALS; i++) {
        if (!same_action(&a->actions[i], &b->actions[i]))
            return "a signal's action";
    }
    if (a->stack.ss_sp != b->stack.ss_sp ||
        a->stack.ss_flags != b->stack.ss_flags ||
        a->stack.ss_size != b->stack.ss_size)
        return "the stack of signals";
    return "";
}

const char *host_state_differs(const host_state *a, const host_state *b)
{
    if (a->rounding != b->rounding)
        return "the rounding mode";
    if (a->modes != b->modes)
        return "flushing, or the traps of arithmetic";
    if (a->x87 != b->x87)
        return "the control word of the x87";
    if (a->flags != b->flags)
        return "the flags of arithmetic";
    if (strcmp(a->locale, b->locale) != 0 ||
        a->thread_locale != b->thread_locale)
        return "the locale";
    if (memcmp(a->omp, b->omp, sizeof a->omp) != 0)
        return "a setting of OpenMP";
    if (a->umask != b->umask)
        return "the umask";
    if (strcmp(a->folder, b->folder) != 0)
        return "the working directory";
    if (a->environment != b->environment)
        return "the environment";
    if (a->n_files != b->n_files)
        return "the number of open files";
    return signals_differ(a, b);
}

#ifdef __SSE__
static void set_x87(unsigned short word)
{
    __asm__ __volatile__("fldcw %0" : : "m"(word));
}

bool host_set_flushing(void)
{
    _mm_setcsr(_mm_getcsr() | FTZ_DAZ);
    return true;
}

bool host_set_traps(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    _mm_setcsr(_mm_getcsr() & ~(MASKS | FLAGS));
    set_x87(0x0340); /* no exception masked, 64 bits */
    return true;
}

bool host_set_x87(void)
{
    set_x87(0x0a7f); /* all masked, 53 bits, upwards */
    return true;
}

void host_set_default_modes(void)
{
    fesetenv(FE_DFL_ENV);
    _mm_setcsr(MASKS);
}
#else
bool host_set_flushing(void)
{
    return false;
}

bool host_set_traps(void)
{
    return false;
}

bool host_set_x87(void)
{
    return false;
}

void host_set_default_modes(void)
{
    fesetenv(FE_DFL_ENV);
}
#endif
