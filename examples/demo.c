/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo: a character model learns to write like a licence.
 *
 * An MLP looks at 16 characters and predicts the next one.  It trains on the
 * licence texts that every Debian system has, is judged on two that it never
 * saw, and writes a sample.  Same bits on any number of threads, whatever runs
 * them, and after a stop and a resume; the last line proves it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trn.h"

#define FOLDER "/usr/share/common-licenses/"
#define CONTEXT 16
#define WIDTH 24
#define HIDDEN 512
#define BATCH 128
#define PROMPT "You may copy and" /* CONTEXT characters */

static const char *const train_files[] = {
    FOLDER "Apache-2.0", FOLDER "BSD",      FOLDER "CC0-1.0", FOLDER "GFDL-1.2",
    FOLDER "GFDL-1.3",   FOLDER "GPL-1",    FOLDER "GPL-2",   FOLDER "GPL-3",
    FOLDER "LGPL-2",     FOLDER "LGPL-2.1", FOLDER "LGPL-3",  FOLDER "MPL-1.1",
};
static const char *const held_out_files[] = {
    FOLDER "MPL-2.0",
    FOLDER "Artistic",
};
#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

typedef struct settings {
    const char *device; /* NULL: TRN_DEVICE, else the CPU */
    trn_dtype dtype;
    int64_t steps, schedule, warmup;
    double learning_rate, dropout;
    int64_t sample, held_out; /* characters to write, to be judged on */
    const char *losses;       /* NULL, or the file for each step's loss */
    const char *save,
        *resume;        /* NULL, or checkpoints to write, to begin with */
    int64_t save_every; /* steps; 0: at the end only */
    uint64_t seed;
} settings;

typedef struct model {
    trn_context *c;
    trn_text *text, *held_out;
    trn_loader *data;
    trn_module *net;
    trn_optim *optim;
    trn_checkpoint *checkpoint;
} model;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the model ---- */

static void build(model *m, const settings *s)
{
    trn_context *c = m->c;
    m->text = trn_text_read(c, COUNT(train_files), train_files, NULL);
    m->held_out =
        trn_text_read(c, COUNT(held_out_files), held_out_files, m->text);
    trn_loader_options order = TRN_LOADER_INIT;
    order.drop_last = true;
    m->data = trn_data_text(c, m->text, CONTEXT, BATCH, &order);

    int v = trn_text_vocabulary(m->text);
    trn_nn_set_dtype(c, s->dtype);
    m->net = trn_nn_sequential(
        c, trn_nn_embedding(c, v, WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, CONTEXT * WIDTH, HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, s->dropout), trn_nn_linear(c, HIDDEN, v), NULL);

    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = s->learning_rate;
    m->optim = trn_optim_adamw(m->net, &o);
    trn_schedule *fall = trn_schedule_cosine(c, s->schedule, 0.05);
    trn_optim_set_schedule(
        m->optim,
        s->warmup > 0 ? trn_schedule_warmup(c, s->warmup, fall) : fall);

    m->checkpoint = trn_checkpoint_new(c);
    trn_checkpoint_module(m->checkpoint, "net", m->net);
    trn_checkpoint_optim(m->checkpoint, "adamw", m->optim);
    trn_checkpoint_loader(m->checkpoint, "text", m->data);
    trn_checkpoint_set_text(m->checkpoint, "text", trn_text_sha256(m->text));
    if (s->resume != NULL)
        trn_checkpoint_load(m->checkpoint, s->resume);
}

/* One step of the loop; 0 when an error is pending. */
static int train_step(model *m)
{
    trn_batch b;
    int more = trn_data_next(m->data, &b);
    if (!more) /* the end of a pass; then the next one begins */
        more = trn_data_next(m->data, &b);
    if (!more)
        return 0;
    trn_step_begin(m->c);
    trn_tensor *logits = trn_nn_forward(m->net, b.inputs);
    trn_backward(trn_cross_entropy(logits, b.targets, NULL));
    trn_optim_clip_norm(m->optim, 1.0);
    trn_optim_step(m->optim);
    return trn_step_end(m->c) == TRN_OK;
}

/* ---- the progress bar ---- */

static void show(int64_t step, int64_t first, int64_t n, double loss,
                 double since)
{
    static const char bar[] = "========================";
    const int width = (int)sizeof bar - 1;
    int filled = (int)(width * step / n);
    double spent = seconds() - since;
    double done = (double)(step - first);
    double rate = done * BATCH / (spent > 0 ? spent : 1);
    double left = spent / done * (double)(n - step);
    printf("%s[%.*s%*s] %5lld/%lld  loss %.4f  %.0f characters/s  %3.0f s left",
           isatty(1) ? "\r" : "", filled, bar, width - filled, "",
           (long long)step, (long long)n, loss, rate, left);
    printf(isatty(1) && step < n ? "  " : "\n");
    fflush(stdout);
}

static void print_digest(model *m, const char *what)
{
    char digest[65];
    if (trn_digest(m->net, digest) == TRN_OK)
        printf("%s  %s\n", digest, what);
}

static void train(model *m, const settings *s, FILE *losses)
{
    double since = seconds();
    double mean = 0;
    int64_t every = isatty(1) ? 20 : s->steps > 10 ? s->steps / 10 : 1;
    int64_t first = trn_step_index(m->c); /* a resumed run's steps so far */
    if (s->save != NULL &&
        trn_checkpoint_save(m->checkpoint, s->save) != TRN_OK)
        return; /* now, not after all the work */
    for (int64_t step = first + 1; step <= s->steps; step++) {
        if (!train_step(m))
            return;
        double loss = trn_step_loss(m->c);
        mean = step == first + 1 ? loss : 0.98 * mean + 0.02 * loss;
        if (losses != NULL)
            fprintf(losses, "%.17g\n", loss);
        if (step % every == 0 || step == s->steps)
            show(step, first, s->steps, mean, since);
        if (step == 10 && step < s->steps)
            print_digest(m, isatty(1) ? "\rparameters at step 10"
                                      : "parameters at step 10");
        if (s->save != NULL &&
            (step == s->steps ||
             (s->save_every > 0 && step % s->save_every == 0)))
            trn_checkpoint_save(m->checkpoint, s->save);
    }
}

/* 1 where the file of losses cannot be written. */
static int train_and_log(model *m, const settings *s)
{
    FILE *losses = s->losses == NULL ? NULL : fopen(s->losses, "w");
    int bad = s->losses != NULL && losses == NULL;
    if (!bad)
        train(m, s, losses);
    if (losses != NULL)
        bad = ferror(losses) | fclose(losses);
    if (bad)
        fprintf(stderr, "demo: %s cannot be written\n", s->losses);
    return bad;
}

/* ---- judging ---- */

/* Nats per character of the held-out text under the training text's counts,
 * each plus one. */
static double unigram_loss(const trn_text *train, const trn_text *test)
{
    double count[256] = {0}, total = 0, loss = 0;
    int v = trn_text_vocabulary(train);
    int64_t n = trn_text_length(train), n_test = trn_text_length(test);
    for (int i = 0; i < v; i++)
        count[i] = 1;
    for (int64_t i = 0; i < n; i++)
        count[trn_text_indices(train)[i]]++;
    for (int i = 0; i < v; i++)
        total += count[i];
    for (int64_t i = 0; i < n_test; i++)
        loss -= log(count[trn_text_indices(test)[i]] / total);
    return loss / (double)n_test;
}

static double held_out_loss(model *m, int64_t n_most)
{
    trn_batch b;
    trn_loader_options order = TRN_LOADER_INIT;
    order.shuffle = false;
    if (n_most < trn_text_length(m->held_out) - CONTEXT)
        order.count = n_most;
    trn_loader *data = trn_data_text(m->c, m->held_out, CONTEXT, 1024, &order);
    double sum = 0;
    int64_t n = 0;
    trn_nn_train(m->net, false);
    while (trn_data_next(data, &b)) {
        trn_step_begin(m->c);
        trn_tensor *logits = trn_nn_forward(m->net, b.inputs);
        trn_tensor *loss = trn_keep(trn_cross_entropy(logits, b.targets, NULL));
        trn_step_end(m->c);
        sum += (double)b.size * trn_tensor_item(loss);
        n += b.size;
        trn_tensor_release(loss);
    }
    trn_nn_train(m->net, true);
    return n > 0 ? sum / (double)n : NAN;
}

/* The elements of a float tensor, widened. */
static void read_doubles(trn_tensor *t, double *out, int n)
{
    const void *x = trn_tensor_map(t);
    for (int i = 0; i < n && x != NULL; i++)
        out[i] = trn_tensor_dtype(t) == TRN_F64 ? ((const double *)x)[i]
                                                : (double)((const float *)x)[i];
    trn_tensor_unmap(t);
}

/* The index where the probabilities add up to u. */
static int choose(const double *p, int v, double u)
{
    double total = 0, so_far = 0;
    for (int i = 0; i < v; i++)
        total += p[i];
    for (int i = 0; i < v; i++) {
        so_far += p[i];
        if (u * total < so_far)
            return i;
    }
    return v - 1;
}

static void write_sample(model *m, int64_t n)
{
    trn_context *c = m->c;
    int v = trn_text_vocabulary(m->text);
    int32_t window[CONTEXT];
    double p[256], u;
    for (int i = 0; i < CONTEXT; i++)
        window[i] = trn_text_index_of(m->text, PROMPT[i]);
    printf("%s", PROMPT);
    trn_generator *dice = trn_generator_new(c, 0xd1ce);
    trn_nn_train(m->net, false);
    for (int64_t i = 0; i < n && trn_errcode(c) == TRN_OK; i++) {
        trn_step_begin(c);
        trn_tensor *x =
            trn_tensor_from(c, TRN_I32, 2, (int64_t[]){1, CONTEXT}, window);
        trn_tensor *logits = trn_mul_scalar(trn_nn_forward(m->net, x), 1.25);
        trn_tensor *y = trn_keep(trn_softmax(logits, -1));
        trn_tensor *roll = trn_keep(trn_uniform(dice, TRN_F32, 0, NULL));
        trn_step_end(c);
        read_doubles(y, p, v);
        u = trn_tensor_item(roll);
        trn_tensor_release(y);
        trn_tensor_release(roll);
        if (trn_errcode(c) != TRN_OK)
            break;
        memmove(window, window + 1, sizeof window - sizeof window[0]);
        window[CONTEXT - 1] = choose(p, v, u);
        putchar(trn_text_byte_of(m->text, window[CONTEXT - 1]));
    }
    putchar('\n');
    trn_nn_train(m->net, true);
}

static void report(model *m, const settings *s)
{
    double unigram = unigram_loss(m->text, m->held_out);
    double loss = held_out_loss(m, s->held_out);
    printf("\nA sample:\n\n");
    write_sample(m, s->sample);
    if (trn_errcode(m->c) != TRN_OK)
        return;
    printf("\nheld-out loss   %.4f nats per character (MPL-2.0, Artistic)\n"
           "unigram model   %.4f: the demo's is %.4f lower\n\n",
           loss, unigram, unigram - loss);
    printf("%s  training text\n", trn_text_sha256(m->text));
    printf("%s  held-out text\n", trn_text_sha256(m->held_out));
    print_digest(m, "parameters");
}

/* ---- the command line ---- */

static const char usage[] =
    "usage: demo [options]\n"
    "  --device NAME       device string (default: TRN_DEVICE, else cpu)\n"
    "  --dtype f32|f64     element type of parameters (f32)\n"
    "  --steps N           training steps (4000)\n"
    "  --schedule N        steps until the learning rate has fallen (4000)\n"
    "  --warmup N          steps until the learning rate has risen (100)\n"
    "  --learning-rate X   (0.002; a resumed run keeps its own)\n"
    "  --dropout P         (0.1)\n"
    "  --sample N          characters of the sample (480)\n"
    "  --held-out N        characters to be judged on, at most (all)\n"
    "  --losses FILE       the loss of each step, a line each\n"
    "  --save FILE         a checkpoint, after the last step\n"
    "  --save-every N      and after each N steps\n"
    "  --resume FILE       go on from a checkpoint, up to --steps in all\n"
    "  --seed N            (0)\n";

static int64_t whole_number(const char *text, int *bad)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    *bad |= end == text || *end != '\0' || n < 0 || n > 1000000000;
    return n;
}

static double real_number(const char *text, int *bad)
{
    char *end;
    double x = strtod(text, &end);
    *bad |= end == text || *end != '\0';
    return x;
}

static int parse(int argc, char **argv, settings *s)
{
    int bad = 0;
    for (int i = 1; i < argc && !bad; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (i + 1 >= argc)
            bad = 1;
        else if (strcmp(name, "--device") == 0)
            s->device = value;
        else if (strcmp(name, "--dtype") == 0) {
            s->dtype = strcmp(value, "f64") == 0 ? TRN_F64 : TRN_F32;
            bad = strcmp(value, "f64") != 0 && strcmp(value, "f32") != 0;
        } else if (strcmp(name, "--steps") == 0)
            s->steps = whole_number(value, &bad);
        else if (strcmp(name, "--schedule") == 0)
            s->schedule = whole_number(value, &bad);
        else if (strcmp(name, "--warmup") == 0)
            s->warmup = whole_number(value, &bad);
        else if (strcmp(name, "--learning-rate") == 0)
            s->learning_rate = real_number(value, &bad);
        else if (strcmp(name, "--dropout") == 0)
            s->dropout = real_number(value, &bad);
        else if (strcmp(name, "--sample") == 0)
            s->sample = whole_number(value, &bad);
        else if (strcmp(name, "--held-out") == 0)
            s->held_out = whole_number(value, &bad);
        else if (strcmp(name, "--losses") == 0)
            s->losses = value;
        else if (strcmp(name, "--save") == 0)
            s->save = value;
        else if (strcmp(name, "--save-every") == 0)
            s->save_every = whole_number(value, &bad);
        else if (strcmp(name, "--resume") == 0)
            s->resume = value;
        else if (strcmp(name, "--seed") == 0)
            s->seed = (uint64_t)whole_number(value, &bad);
        else
            bad = 1;
    }
    return !bad && (s->save_every == 0 || s->save != NULL);
}

int main(int argc, char **argv)
{
    settings s = {
        .dtype = TRN_F32,
        .steps = 4000,
        .schedule = 4000,
        .warmup = 100,
        .learning_rate = 0.002,
        .dropout = 0.1,
        .sample = 480,
        .held_out = 1000000000,
    };
    if (!parse(argc, argv, &s)) {
        fputs(usage, stderr);
        return 2;
    }
    trn_options o = TRN_OPTIONS_INIT;
    o.device = s.device;
    o.seed = s.seed;
    model m = {0};
    int bad = 0;
    if (trn_open(&m.c, &o) == TRN_OK)
        build(&m, &s);
    if (trn_errcode(m.c) == TRN_OK) {
        printf("libtrn %s on %s (%s), %d threads (%s); %lld parameters, "
               "%lld characters to learn from\n",
               trn_version(), trn_device_name(m.c), trn_device_description(m.c),
               trn_thread_count(m.c), trn_engine_name(m.c),
               (long long)trn_nn_parameter_numel(m.net),
               (long long)trn_text_length(m.text));
        bad = train_and_log(&m, &s);
    }
    if (trn_errcode(m.c) == TRN_OK && !bad)
        report(&m, &s);
    if (trn_errcode(m.c) != TRN_OK)
        fprintf(stderr, "demo: %s\n", trn_errmsg(m.c));
    return trn_close(m.c) == TRN_OK && !bad ? 0 : 1;
}
