/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding OpenBLAS, and what is the process's of it.
 *
 * It is loaded when a context asks for it, not linked: it starts its threads
 * when it is loaded, and would do so in every program that links libtrn.  It is
 * never unloaded.
 *
 * The number of threads that it uses is one for the process, so it is changed
 * for the time of a product only, behind the one lock of this file.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/cpu_blas.h"

#ifdef TRN_HAVE_OPENBLAS

#include <dlfcn.h>
#include <pthread.h>

#include "backends/pjrt/pjrt_object.h"

#define DEFAULT_LIBRARY "libopenblas.so.0"

enum { MAX_LIBRARIES = 8, PTHREADS = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static trn__blas libraries[MAX_LIBRARIES];
static int n_libraries;

/* What the host sets while a product runs stays, unless it sets just what we
 * have set, which looks like nothing. */
void trn__blas_enter(trn__blas *blas, int n_threads)
{
    pthread_mutex_lock(&lock);
    const int now = blas->get_threads();
    if (blas->n_users++ == 0 || now != blas->threads_set)
        blas->threads_before = now;
    blas->threads_set = blas->shared ? 1 : n_threads;
    if (blas->omp_get != NULL)
        blas->omp_before = blas->omp_get();
    if (now != blas->threads_set)
        blas->set_threads(blas->threads_set);
    if (blas->shared)
        pthread_mutex_unlock(&lock);
}

void trn__blas_leave(trn__blas *blas)
{
    if (blas->shared)
        pthread_mutex_lock(&lock);
    if (--blas->n_users == 0 && blas->get_threads() == blas->threads_set)
        blas->set_threads(blas->threads_before);
    if (blas->omp_set != NULL)
        blas->omp_set(blas->omp_before);
    pthread_mutex_unlock(&lock);
}

static int32_t refuse(const trn_host_services *host, const char *library,
                      const char *why)
{
    char text[800];
    snprintf(text, sizeof text,
             "trn_open: matmul (TRN_MATMUL) is \"openblas\": tried the library "
             "%.200s: %.300s; expected OpenBLAS, of which openblas_library "
             "(TRN_OPENBLAS_LIBRARY) names the file",
             library, why);
    return host->fail(host->host, TRN_ERR_UNSUPPORTED, text);
}

/* "OpenBLAS 0.3.21 SkylakeX", of a text that begins with the first two. */
static void name(trn__blas *b, const char *config, const char *core)
{
    size_t n = strcspn(config, " ");
    n += strspn(config + n, " ");
    n += strcspn(config + n, " ");
    snprintf(b->name, sizeof b->name, "%.*s %.40s", n < 50 ? (int)n : 50,
             config, core);
}

/* The entries of a library that was loaded; NULL, or what is wrong with it. */
static const char *take(trn__blas *b, void *object)
{
    char *(*config)(void) = NULL, *(*core)(void) = NULL;
    int (*parallel)(void) = NULL;
    const struct {
        const char *name;
        void *to;
        bool optional;
    } entries[] = {
        {"openblas_get_config", &config, false},
        {"openblas_get_corename", &core, false},
        {"openblas_get_parallel", &parallel, false},
        {"openblas_get_num_threads", &b->get_threads, false},
        {"openblas_set_num_threads", &b->set_threads, false},
        {"cblas_sgemm", &b->sgemm, false},
        {"cblas_dgemm", &b->dgemm, false},
        {"omp_get_max_threads", &b->omp_get, true},
        {"omp_set_num_threads", &b->omp_set, true},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(object, entries[i].name);
        if (symbol == NULL && !entries[i].optional)
            return "it does not export what OpenBLAS does";
        memcpy(entries[i].to, &symbol, sizeof symbol);
    }
    if (strstr(config(), "USE64BITINT") != NULL)
        return "its integers have 64 bits, and 32 are wanted";
    b->object = object;
    /* One without threads is not safe to call from several, one with OpenMP
     * goes by its caller's number of threads, not by ours. */
    b->shared = parallel() == PTHREADS;
    if (b->shared || b->omp_get == NULL || b->omp_set == NULL) {
        b->omp_get = NULL;
        b->omp_set = NULL;
    }
    name(b, config(), core());
    return NULL;
}

/* Under the lock. */
static const char *find(void *object, trn__blas **found)
{
    for (int i = 0; i < n_libraries; i++) {
        if (libraries[i].object == object) {
            *found = &libraries[i];
            return NULL;
        }
    }
    if (n_libraries == MAX_LIBRARIES)
        return "this process has loaded 8 others";
    trn__blas b = {.object = NULL};
    const char *why = take(&b, object);
    if (why == NULL) {
        libraries[n_libraries] = b;
        *found = &libraries[n_libraries++];
    }
    return why;
}

static int32_t load(const trn_host_services *host, trn__blas **blas)
{
    const char *path = host->option(host->host, "openblas_library");
    if (path == NULL || path[0] == '\0')
        path = DEFAULT_LIBRARY;
    const char *why =
        strchr(path, '/') == NULL ? NULL : trn__object_fault(path);
    if (why != NULL)
        return refuse(host, path, why);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        why = dlerror();
        return refuse(host, path, why == NULL ? "no reason given" : why);
    }
    pthread_mutex_lock(&lock);
    why = find(object, blas);
    pthread_mutex_unlock(&lock);
    return why == NULL ? TRN_OK : refuse(host, path, why);
}

#else

void trn__blas_enter(trn__blas *blas, int n_threads)
{
    (void)blas;
    (void)n_threads;
}

void trn__blas_leave(trn__blas *blas)
{
    (void)blas;
}

static int32_t load(const trn_host_services *host, trn__blas **blas)
{
    (void)blas;
    return host->fail(host->host, TRN_ERR_UNSUPPORTED,
                      "trn_open: matmul (TRN_MATMUL) is \"openblas\", but this "
                      "library was built without OpenBLAS; expected "
                      "reproducible");
}

#endif

int32_t trn__blas_open(const trn_host_services *host, trn__blas **blas)
{
    const char *way = host->option(host->host, "matmul");
    char text[160];
    *blas = NULL;
    if (way == NULL || strcmp(way, "reproducible") == 0)
        return TRN_OK;
    if (strcmp(way, "openblas") == 0)
        return load(host, blas);
    snprintf(text, sizeof text,
             "trn_open: matmul (TRN_MATMUL) is \"%.40s\"; expected "
             "reproducible or openblas",
             way);
    return host->fail(host->host, TRN_ERR_ARG, text);
}
