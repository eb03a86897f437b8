/*
 * gearman_load: a load generator for any Gearman server. bench/compare.py compiles and runs it.
 *
 *     gearman_load PORT MODE JOBS CLIENTS WINDOW WORKERS PAYLOAD
 *
 * It connects to 127.0.0.1:PORT, runs JOBS jobs of the function "echo" with payloads of PAYLOAD bytes, prints one line
 * of JSON and exits with 0. Anything unexpected is an error on stderr and exit code 1; wrong arguments give exit code 2.
 *
 *     {"jobs": 8000, "seconds": 1.23, "processor_seconds": 0.45}
 *
 * Why it is written in C: a Gearman server is fast enough that a load generator in Python is the bottleneck, and then
 * the figures describe the generator. "processor_seconds" is this program's own processor time: near "seconds", the
 * server could do more than the figure says.
 *
 * One thread plays all clients and all workers, with epoll. Every connection has an input and an output buffer. What one
 * read brings is handled packet by packet; the answers collect in the output buffer and leave with one write.
 *
 * With WORKER_PORT the workers connect to another server than the clients. FUNCTION is for several runs at once on
 * servers of one cluster: each counts the jobs of its own workers, so no other's may get them.
 *
 * The modes:
 *
 *     foreground   CLIENTS clients keep WINDOW jobs each in flight; WORKERS workers return each payload. A job counts
 *                  when its client has the result. Time starts when all workers are asleep.
 *     background   CLIENTS clients keep WINDOW unacknowledged submits each in flight. A job counts when its client has
 *                  the handle. No worker takes part, so the jobs stay in the queue; WORKERS is ignored.
 *     drain        WORKERS workers empty a queue that a run in mode background has filled. A job counts when a worker
 *                  has received it and sends its result. CLIENTS and WINDOW are ignored.
 *     run          CLIENTS clients keep WINDOW unacknowledged submits each in flight, while WORKERS workers run the
 *                  jobs. A job counts when a worker has received it and sends its result. Time starts when all workers
 *                  are asleep.
 *
 * A worker behaves as the libraries do: it sends GRAB_JOB; after NO_JOB it sends PRE_SLEEP and waits for NOOP; after
 * JOB_ASSIGN it sends WORK_COMPLETE and the next GRAB_JOB together.
 *
 * A packet of the protocol is a header of 12 bytes (magic "\0REQ" or "\0RES", type, size of the body; the numbers are
 * big endian) and a body of fields with a zero byte between them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADER_SIZE 12
#define READ_SIZE 65536       /* free bytes in an input buffer before each read */
#define EVENTS 256            /* connections that one epoll_wait may report */
#define STALL_MILLISECONDS 20000 /* without any packet for this long, the run is an error */

enum packet_type {
    CAN_DO = 1, PRE_SLEEP = 4, NOOP = 6, SUBMIT_JOB = 7, JOB_CREATED = 8, GRAB_JOB = 9, NO_JOB = 10, JOB_ASSIGN = 11,
    WORK_COMPLETE = 13, SUBMIT_JOB_BG = 18, ERROR = 19,
};

enum mode { FOREGROUND, BACKGROUND, DRAIN, RUN };

/* Bytes from start to end are in use. */
struct buffer {
    unsigned char *bytes;
    size_t start, end, size;
};

struct connection {
    int socket;
    bool awaits_writable; /* the kernel's buffer is full: epoll reports when it is not */
    struct buffer input, output;
};

/* What the run is to do, from the command line. */
static enum mode mode;
static char function[64] = "echo"; /* followed by zero bytes */
static size_t function_size = 4;
static int port, worker_port; /* of the server for clients, and of the one for workers */
static long jobs, clients, window, workers, payload_size;
static char *payload;

/* How far it is. */
static int poller;
static long submitted, completed; /* completed: in the sense of the mode, see above */
static long sleeping;             /* workers that were told NO_JOB and no NOOP since */

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "gearman_load: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Make room for `count` bytes at the end. Bytes in use move to the front first, and the buffer doubles if it must. */
static void reserve(struct buffer *buffer, size_t count)
{
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
    if (buffer->size - buffer->end >= count)
        return;
    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->start = 0;
    }
    if (buffer->size - buffer->end >= count)
        return;
    buffer->size = 2 * (buffer->end + count);
    buffer->bytes = realloc(buffer->bytes, buffer->size);
    if (buffer->bytes == NULL)
        fail("out of memory");
}

static void append(struct buffer *buffer, const void *bytes, size_t count)
{
    memcpy(buffer->bytes + buffer->end, bytes, count);
    buffer->end += count;
}

/* Queue a request whose body is two byte strings, one after the other. */
static void send_packet(struct connection *connection, enum packet_type type, const void *first, size_t first_size,
                        const void *second, size_t second_size)
{
    uint32_t numbers[2] = {htonl(type), htonl((uint32_t)(first_size + second_size))};
    reserve(&connection->output, HEADER_SIZE + first_size + second_size);
    append(&connection->output, "\0REQ", 4);
    append(&connection->output, numbers, sizeof numbers);
    if (first_size)
        append(&connection->output, first, first_size);
    if (second_size)
        append(&connection->output, second, second_size);
}

static void send_request(struct connection *connection, enum packet_type type)
{
    send_packet(connection, type, NULL, 0, NULL, 0);
}

/* The body of both kinds of submits: function, empty unique key, payload. */
static void submit_job(struct connection *client)
{
    send_packet(client, mode == FOREGROUND ? SUBMIT_JOB : SUBMIT_JOB_BG, function, function_size + 2, payload,
                (size_t)payload_size); /* with two zero bytes: it has no unique key */
    submitted++;
}

static void await(struct connection *connection, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.ptr = connection};
    if (writable == connection->awaits_writable)
        return;
    if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event))
        fail("epoll_ctl: %s", strerror(errno));
    connection->awaits_writable = writable;
}

/* Write what is queued; what does not fit waits until the socket is writable. */
static void flush(struct connection *connection)
{
    struct buffer *output = &connection->output;
    while (output->start < output->end) {
        ssize_t written = write(connection->socket, output->bytes + output->start, output->end - output->start);
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0)
            fail("cannot write to the server: %s", strerror(errno));
        output->start += (size_t)written;
    }
    await(connection, output->start < output->end);
}

static struct connection *open_connection(int to)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)to)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    int yes = 1;

    if (connection == NULL)
        fail("out of memory");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->socket < 0)
        fail("cannot open a socket: %s", strerror(errno));
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address))
        fail("cannot connect to 127.0.0.1:%d: %s", to, strerror(errno));
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(connection->socket, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event))
        fail("epoll_ctl: %s", strerror(errno));
    return connection;
}

/* The next job takes the place of one in the window. */
static void submit_next(struct connection *client)
{
    if (submitted < jobs)
        submit_job(client);
}

/* The size of a field, with the zero byte at its end. */
static size_t field_size(const unsigned char *body, size_t size)
{
    const unsigned char *end = memchr(body, 0, size);
    if (end == NULL)
        fail("the server sent a packet with too few fields");
    return (size_t)(end - body) + 1;
}

/* Return the payload of a job as its result, and ask for the next job. JOB_ASSIGN has handle, function, payload. */
static void run_job(struct connection *worker, const unsigned char *body, size_t size)
{
    size_t handle = field_size(body, size);
    size_t function = field_size(body + handle, size - handle);
    const unsigned char *data = body + handle + function;
    send_packet(worker, WORK_COMPLETE, body, handle, data, size - handle - function);
    send_request(worker, GRAB_JOB);
    if (mode == DRAIN || mode == RUN)
        completed++;
}

static void handle_packet(struct connection *connection, uint32_t type, const unsigned char *body, size_t size)
{
    switch (type) {
    case JOB_CREATED: /* the acknowledgement of a submit; a foreground job is not done yet */
        completed += mode == BACKGROUND;
        if (mode != FOREGROUND)
            submit_next(connection);
        break;
    case WORK_COMPLETE:
        completed++;
        submit_next(connection);
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
    case ERROR: {
        size_t code = field_size(body, size);
        fail("the server sent ERROR %s: %.*s", (const char *)body, (int)(size - code), (const char *)body + code);
    }
    default:
        fail("the server sent a packet of type %u, which this load does not expect", type);
    }
}

/* Take whole packets from the input buffer. */
static void handle_input(struct connection *connection)
{
    struct buffer *input = &connection->input;
    while (input->end - input->start >= HEADER_SIZE) {
        const unsigned char *header = input->bytes + input->start;
        uint32_t numbers[2];
        if (memcmp(header, "\0RES", 4) != 0)
            fail("the server sent something that is not a Gearman packet");
        memcpy(numbers, header + 4, sizeof numbers);
        size_t size = ntohl(numbers[1]);
        if (input->end - input->start - HEADER_SIZE < size)
            break;
        input->start += HEADER_SIZE + size;
        handle_packet(connection, ntohl(numbers[0]), header + HEADER_SIZE, size);
    }
}

/* Read until the socket is empty. */
static void read_input(struct connection *connection)
{
    struct buffer *input = &connection->input;
    for (;;) {
        reserve(input, READ_SIZE);
        size_t room = input->size - input->end;
        ssize_t count = read(connection->socket, input->bytes + input->end, room);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0)
            fail("cannot read from the server: %s", strerror(errno));
        if (count == 0)
            fail("the server closed a connection after %ld of %ld jobs", completed, jobs);
        input->end += (size_t)count;
        if ((size_t)count < room) /* there was no more: spare the read that would only say EAGAIN */
            return;
    }
}

/* Serve all connections until a counter has reached a number. */
static void run_until(const long *counter, long number)
{
    struct epoll_event events[EVENTS];
    while (*counter < number) {
        int count = epoll_wait(poller, events, EVENTS, STALL_MILLISECONDS);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait: %s", strerror(errno));
        if (count == 0)
            fail("no packet for %d seconds: %ld jobs submitted, %ld of %ld done, %ld of %ld workers asleep",
                 STALL_MILLISECONDS / 1000, submitted, completed, jobs, sleeping, workers);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & ~(uint32_t)EPOLLOUT) { /* also errors and hang-ups, which read() reports */
                read_input(connection);
                handle_input(connection);
            }
            flush(connection);
        }
    }
}

static struct connection **open_connections(long count, int to)
{
    struct connection **connections = calloc((size_t)count + 1, sizeof *connections);
    if (connections == NULL)
        fail("out of memory");
    for (long i = 0; i < count; i++)
        connections[i] = open_connection(to);
    return connections;
}

static void start_workers(struct connection **connections)
{
    for (long i = 0; i < workers; i++) {
        send_packet(connections[i], CAN_DO, function, function_size, NULL, 0);
        send_request(connections[i], GRAB_JOB);
        flush(connections[i]);
    }
}

/* Fill the window of every client. */
static void start_clients(struct connection **connections)
{
    for (long i = 0; i < clients; i++) {
        for (long k = 0; k < window && submitted < jobs; k++)
            submit_job(connections[i]);
        flush(connections[i]);
    }
}

static long number(const char *text, const char *name, long least, long most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "gearman_load: %s must be a number from %ld to %ld, not \"%s\"\n", name, least, most, text);
        exit(2);
    }
    return value;
}

static void parse_arguments(int count, char **words)
{
    static const char *const modes[] = {
        [FOREGROUND] = "foreground", [BACKGROUND] = "background", [DRAIN] = "drain", [RUN] = "run"};
    if (count < 8 || count > 10) {
        fprintf(stderr, "usage: gearman_load PORT MODE JOBS CLIENTS WINDOW WORKERS PAYLOAD [WORKER_PORT [FUNCTION]]\n");
        exit(2);
    }
    for (mode = FOREGROUND; mode <= RUN && strcmp(words[2], modes[mode]) != 0; mode++)
        ;
    if (mode > RUN) {
        fprintf(stderr, "gearman_load: MODE is foreground, background, drain or run, not \"%s\"\n", words[2]);
        exit(2);
    }
    port = (int)number(words[1], "PORT", 1, 65535);
    jobs = number(words[3], "JOBS", 1, 1000000000);
    clients = number(words[4], "CLIENTS", mode == DRAIN ? 0 : 1, 10000);
    window = number(words[5], "WINDOW", mode == DRAIN ? 0 : 1, 1000000);
    workers = number(words[6], "WORKERS", mode == BACKGROUND ? 0 : 1, 10000);
    payload_size = number(words[7], "PAYLOAD", 0, 1000000000);
    worker_port = count > 8 ? (int)number(words[8], "WORKER_PORT", 1, 65535) : port;
    if (count > 9) {
        function_size = strnlen(words[9], sizeof function - 2);
        memset(function, 0, sizeof function);
        memcpy(function, words[9], function_size);
    }
    if (mode == DRAIN)
        clients = 0;
    if (mode == BACKGROUND)
        workers = 0;
}

int main(int count, char **words)
{
    parse_arguments(count, words);
    payload = malloc((size_t)payload_size + 1);
    if (payload == NULL)
        fail("out of memory");
    memset(payload, 'x', (size_t)payload_size);
    poller = epoll_create1(0);
    if (poller < 0)
        fail("epoll_create1: %s", strerror(errno));

    struct connection **worker_connections = open_connections(workers, worker_port);
    struct connection **client_connections = open_connections(clients, port);
    if (mode == FOREGROUND || mode == RUN) {
        start_workers(worker_connections);
        run_until(&sleeping, workers);
    }
    double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (mode == DRAIN)
        start_workers(worker_connections);
    else
        start_clients(client_connections);
    run_until(&completed, jobs);
    printf("{\"jobs\": %ld, \"seconds\": %.6f, \"processor_seconds\": %.6f}\n", jobs, seconds(CLOCK_MONOTONIC) - began,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    return 0;
}
