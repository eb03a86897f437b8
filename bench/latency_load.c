/*
 * latency_load: jobs that arrive at times of their own, and how long each takes. bench/latency.py compiles and runs it.
 *
 *     latency_load PORT WORK RATE JOBS CONNECTIONS WINDOW WORKERS
 *
 * It connects to 127.0.0.1:PORT, submits JOBS jobs with 64 bytes and prints one line of JSON; times are in seconds.
 *
 *     {"jobs": 8000, "rate": 4000.0, "p50": 0.0001, "p99": 0.0004, "p999": 0.0011, "most": 0.003,
 *      "late_p50": 0.00001, "late_p99": 0.00003, "late_most": 0.0002, "busy": 0.31}
 *
 * With a RATE, jobs per second, the load is open: jobs arrive as those of many independent users do (a Poisson process,
 * the same one in every run), whether or not the server keeps up. A job's time begins when it is due, not when it is
 * sent: a server that stalls is charged with all the jobs that were due meanwhile, and a load that is late does not hide
 * it. How late the load itself has sent each job is in "late_...": compare that with the server's figures before you
 * believe them. "busy" is the share of its time in which this program used its processor.
 *
 * With RATE 0 the load is closed: each connection keeps WINDOW jobs in flight, and "rate" is what the server can take.
 *
 * WORK is one of
 *
 *     foreground   Gearman, until the client has the result, by WORKERS workers in this program that return the payload
 *     background   Gearman, until JOB_CREATED
 *     put          beanstalkd, until INSERTED
 *     push         Redis, LPUSH until its reply
 *
 * One thread plays everybody. Between events it sleeps until the next job is due, to the microsecond.
 */
#define PROGRAM "latency_load"
#include "gearman_packets.h"

#include <math.h>
#include <poll.h>
#include <sys/prctl.h>

#define PAYLOAD_SIZE 64
#define NUMBER_SIZE 16 /* the payload begins with the job's number, which a result brings back */
#define FUNCTION "latency"

struct work {
    const char *name;
    void (*submit)(struct connection *client, long job);
    void (*handle_answers)(struct connection *client);
    char answer; /* what a line begins with that accepts a job, for protocols with lines */
    bool has_workers;
};

static const struct work *work;
static double rate; /* jobs per second; 0: as fast as the window allows */
static long port, jobs, clients, window, workers;
static struct connection **client_connections;
static double *due, *late, *took; /* by job; `due` is a time, the others are durations */
static long *next;                /* by job: the one that was submitted after it on the same connection */
static long submitted, answered, sleeping;

static void payload_of(long job, char payload[PAYLOAD_SIZE + 1])
{
    memset(payload, 'x', PAYLOAD_SIZE);
    snprintf(payload, NUMBER_SIZE + 1, "%0*ld", NUMBER_SIZE, job);
    payload[NUMBER_SIZE] = 'x';
    payload[PAYLOAD_SIZE] = '\0';
}

static void submit_gearman(struct connection *client, long job)
{
    static const char head[] = FUNCTION "\0"; /* and a zero byte of its own: no unique key */
    char payload[PAYLOAD_SIZE + 1];
    payload_of(job, payload);
    send_packet(client, work->has_workers ? SUBMIT_JOB : SUBMIT_JOB_BG, head, sizeof head, payload, PAYLOAD_SIZE);
}

static void submit_line(struct connection *client, long job, const char *head)
{
    char payload[PAYLOAD_SIZE + 1];
    payload_of(job, payload);
    size_t size = strlen(head);
    reserve(&client->output, size + PAYLOAD_SIZE + 2);
    append(&client->output, head, size);
    append(&client->output, payload, PAYLOAD_SIZE);
    append(&client->output, "\r\n", 2);
}

static void submit_put(struct connection *client, long job)
{
    submit_line(client, job, "put 0 0 3600 64\r\n"); /* priority, delay, seconds that it may take, size */
}

static void submit_push(struct connection *client, long job)
{
    submit_line(client, job, "*3\r\n$5\r\nLPUSH\r\n$7\r\n" FUNCTION "\r\n$64\r\n");
}

static void submit_next(struct connection *client)
{
    long job = submitted++;
    double now = seconds(CLOCK_MONOTONIC);
    if (rate == 0)
        due[job] = now;
    late[job] = now - due[job];
    next[job] = -1;
    if (client->newest < 0)
        client->oldest = job;
    else
        next[client->newest] = job;
    client->newest = job;
    work->submit(client, job);
}

static void answer_to(struct connection *client, long job)
{
    took[job] = seconds(CLOCK_MONOTONIC) - due[job];
    answered++;
    if (rate == 0 && submitted < jobs)
        submit_next(client);
}

/* Answers to submits come in the order of the submits. */
static void answer_to_oldest(struct connection *client)
{
    long job = client->oldest;
    if (job < 0)
        fail("the server sent more answers than it had requests");
    client->oldest = next[job];
    if (client->oldest < 0)
        client->newest = -1;
    answer_to(client, job);
}

static void run_job(struct connection *worker, const unsigned char *body, size_t size)
{
    size_t handle = field_size(body, size);
    size_t name = field_size(body + handle, size - handle);
    send_packet(worker, WORK_COMPLETE, body, handle, body + handle + name, size - handle - name);
    send_request(worker, GRAB_JOB);
}

static void handle_result(struct connection *client, const unsigned char *body, size_t size)
{
    size_t handle = field_size(body, size);
    char digits[NUMBER_SIZE + 1] = "";
    if (size - handle != PAYLOAD_SIZE)
        fail("the server sent a result of another size");
    memcpy(digits, body + handle, NUMBER_SIZE);
    long job = strtol(digits, NULL, 10);
    if (job < 0 || job >= submitted || took[job] > 0)
        fail("the server sent the result of job %s, which nobody waits for", digits);
    answer_to(client, job);
}

static void handle_packet(struct connection *connection, uint32_t type, const unsigned char *body, size_t size)
{
    switch (type) {
    case JOB_CREATED:
        if (!work->has_workers)
            answer_to_oldest(connection);
        break;
    case WORK_COMPLETE:
        handle_result(connection, body, size);
        break;
    case JOB_ASSIGN:
        run_job(connection, body, size);
        break;
    case NO_JOB:
        sleeping++;
        send_request(connection, PRE_SLEEP);
        break;
    case NOOP:
        sleeping--;
        send_request(connection, GRAB_JOB);
        break;
    default:
        fail("the server sent a packet of type %u: %.*s", type, (int)size, (const char *)body);
    }
}

static void handle_lines(struct connection *client)
{
    struct buffer *input = &client->input;
    unsigned char *line, *end;
    while (line = input->bytes + input->start, (end = memchr(line, '\n', input->end - input->start)) != NULL) {
        if (*line != (unsigned char)work->answer)
            fail("the server did not accept a job: %.*s", (int)(end - line), (const char *)line);
        input->start += (size_t)(end - line) + 1;
        answer_to_oldest(client);
    }
}

/* Serve what has arrived, and wait for it until a time. */
static void serve(double until)
{
    struct epoll_event events[EVENTS];
    struct pollfd all = {.fd = poller, .events = POLLIN};
    double left = until - seconds(CLOCK_MONOTONIC);
    left = left > 0 ? left : 0;
    struct timespec time = {(time_t)left, (long)((left - floor(left)) * 1e9)};
    if (ppoll(&all, 1, &time, NULL) < 0 && errno != EINTR) /* epoll_wait knows no times below a millisecond */
        fail("ppoll: %s", strerror(errno));
    int count = epoll_wait(poller, events, EVENTS, 0);
    if (count < 0 && errno != EINTR)
        fail("epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (events[i].events & ~(uint32_t)EPOLLOUT) {
            read_input(connection);
            work->handle_answers(connection);
        }
        flush(connection);
    }
}

/* What is due is submitted before anything else: a job that waits in this program would be the server's fault. */
static void submit_due(void)
{
    while (submitted < jobs && due[submitted] <= seconds(CLOCK_MONOTONIC)) {
        struct connection *client = client_connections[submitted % clients];
        submit_next(client);
        flush(client);
    }
}

static void run(void)
{
    double stall = STALL_MILLISECONDS / 1e3, heard = seconds(CLOCK_MONOTONIC);
    while (answered < jobs) {
        long before = answered;
        if (rate > 0)
            submit_due();
        serve(rate > 0 && submitted < jobs ? due[submitted] : heard + stall);
        if (answered > before)
            heard = seconds(CLOCK_MONOTONIC);
        else if (seconds(CLOCK_MONOTONIC) > heard + stall)
            fail("no answer for %g seconds: %ld of %ld jobs submitted, %ld answered", stall, submitted, jobs, answered);
    }
}

static void start_workers(void)
{
    struct connection **connections = open_connections(workers, (int)port);
    for (long i = 0; i < workers; i++) {
        send_packet(connections[i], CAN_DO, FUNCTION, strlen(FUNCTION), NULL, 0);
        send_request(connections[i], GRAB_JOB);
        flush(connections[i]);
    }
    double deadline = seconds(CLOCK_MONOTONIC) + STALL_MILLISECONDS / 1e3;
    while (sleeping < workers) {
        serve(deadline);
        if (seconds(CLOCK_MONOTONIC) > deadline)
            fail("only %ld of %ld workers were told that there is no job", sleeping, workers);
    }
}

/* The times between two arrivals of a Poisson process are exponential. */
static void plan_arrivals(double start)
{
    uint64_t random = 0x9e3779b97f4a7c15; /* the same arrivals in every run, so that servers are compared under the same */
    for (long job = 0; job < jobs; job++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
        start -= log(((double)(random >> 11) + 1) / 9007199254740993.0) / rate; /* of a number above 0 and at most 1 */
        due[job] = start;
    }
}

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double percentile(const double *sorted, double share)
{
    long at = (long)((double)jobs * share);
    return sorted[at < jobs ? at : jobs - 1];
}

static void parse_arguments(int count, char **words)
{
    static const struct work works[] = {
        {"foreground", submit_gearman, handle_input, 0, true},
        {"background", submit_gearman, handle_input, 0, false},
        {"put", submit_put, handle_lines, 'I', false},
        {"push", submit_push, handle_lines, ':', false},
    };
    if (count != 8) {
        fprintf(stderr, "usage: latency_load PORT WORK RATE JOBS CONNECTIONS WINDOW WORKERS\n");
        exit(2);
    }
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, words[2]) == 0)
            work = &works[i];
    if (work == NULL) {
        fprintf(stderr, "latency_load: WORK is foreground, background, put or push, not \"%s\"\n", words[2]);
        exit(2);
    }
    port = number(words[1], "PORT", 1, 65535);
    rate = (double)number(words[3], "RATE", 0, 10000000);
    jobs = number(words[4], "JOBS", 1, 100000000);
    clients = number(words[5], "CONNECTIONS", 1, 10000);
    window = number(words[6], "WINDOW", 1, 1000000);
    workers = number(words[7], "WORKERS", work->has_workers, 10000);
}

int main(int count, char **words)
{
    parse_arguments(count, words);
    due = calloc((size_t)jobs, sizeof *due), late = calloc((size_t)jobs, sizeof *late);
    took = calloc((size_t)jobs, sizeof *took), next = calloc((size_t)jobs, sizeof *next);
    if (due == NULL || late == NULL || took == NULL || next == NULL)
        fail("out of memory");
    poller = epoll_create1(0);
    if (poller < 0)
        fail("epoll_create1: %s", strerror(errno));
    prctl(PR_SET_TIMERSLACK, 1); /* the kernel's 50 microseconds would be on top of every job's time */
    client_connections = open_connections(clients, (int)port);
    if (work->has_workers)
        start_workers();

    double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rate > 0)
        plan_arrivals(began);
    for (long i = 0; rate == 0 && i < clients; i++) {
        for (long k = 0; k < window && submitted < jobs; k++)
            submit_next(client_connections[i]);
        flush(client_connections[i]);
    }
    run();
    double whole = seconds(CLOCK_MONOTONIC) - began;
    used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    qsort(took, (size_t)jobs, sizeof *took, by_size);
    qsort(late, (size_t)jobs, sizeof *late, by_size);
    printf("{\"jobs\": %ld, \"rate\": %.1f, \"p50\": %.7f, \"p99\": %.7f, \"p999\": %.7f, \"most\": %.7f, "
           "\"late_p50\": %.7f, \"late_p99\": %.7f, \"late_most\": %.7f, \"busy\": %.3f}\n",
           jobs, (double)jobs / whole, percentile(took, 0.5), percentile(took, 0.99), percentile(took, 0.999),
           took[jobs - 1], percentile(late, 0.5), percentile(late, 0.99), late[jobs - 1], used / whole);
    return 0;
}
