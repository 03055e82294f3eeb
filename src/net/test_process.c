/* test_process.c - children of every kind: no child may block us or outlive its time. */
#include "base/buf.h"
#include "net/process.h"
#include "support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- helpers --------------------------------------------------------------------------------------------- */

/* One child and all it did. Lives on the loop's thread until `done`. */
struct child {
    dgm_process_options options;
    const char *argv[8];
    const char *input;  /* written at the start, then the input ends; NULL: it stays open */
    uint64_t kill_ms;   /* kill it then; 0: never */
    size_t kill_at;     /* ... or behind this many lines */
    size_t pause_at;    /* pause behind this many lines, for 50 ms */
    size_t input_bytes; /* so many more */
    dgm_loops *loops;
    dgm_process *process;
    dgm_timer timer, pause_timer;
    uv_sem_t done;
    dgm_code rc;
    dgm_err err;
    dgm_buf channel;        /* likewise; "." at its end */
    dgm_buf out, error_out; /* pieces in brackets, the end as its first letter */
    size_t n_lines, n_bytes, n_while_paused;
    bool paused;
    dgm_process_exit how;
    int pid;
    uint64_t ms;
};

static void keep(dgm_buf *to, dgm_str line, dgm_line_end end)
{
    dgm_buf_printf(to, "[%.*s]%c", DGM_P(line), "WCL"[end]);
}

static void on_line(void *user, dgm_str line, dgm_line_end end)
{
    struct child *c = user;
    if (line.n < 200)
        keep(&c->out, line, end);
    c->n_lines++;
    c->n_bytes += line.n;
    c->n_while_paused += c->paused;
    if (c->kill_at && c->n_lines == c->kill_at)
        dgm_timer_start(&c->timer, 1);
    if (c->pause_at && c->n_lines == c->pause_at) {
        dgm_process_pause(c->process);
        c->paused = true;
        dgm_timer_start(&c->pause_timer, 50);
    }
}

static void on_channel_line(void *user, dgm_str line, dgm_line_end end)
{
    struct child *c = user;
    if (line.n < 200)
        keep(&c->channel, line, end);
    c->n_lines++;
    c->n_bytes += line.n;
    c->n_while_paused += c->paused;
    if (c->pause_at && c->n_lines == c->pause_at) {
        dgm_process_pause_channel(c->process);
        c->paused = true;
        dgm_timer_start(&c->pause_timer, 50);
    }
}

static void on_channel_end(void *user)
{
    dgm_buf_add_char(&((struct child *)user)->channel, '.');
}

static void on_error_line(void *user, dgm_str line, dgm_line_end end)
{
    keep(&((struct child *)user)->error_out, line, end);
}

static void on_pause_over(void *arg)
{
    struct child *c = arg;
    c->paused = false;
    dgm_process_resume(c->process);
    dgm_process_resume_channel(c->process);
}

static void on_pause_timer_closed(void *arg)
{
    uv_sem_post(&((struct child *)arg)->done);
}

static void on_timer_closed(void *arg)
{
    struct child *c = arg;
    dgm_timer_close(&c->pause_timer, on_pause_timer_closed, c);
}

static void on_exit_(void *user, dgm_process_exit how)
{
    struct child *c = user;
    c->how = how;
    c->ms = uv_now(&dgm_loops_at(c->loops, 0)->uv) - c->ms;
    dgm_timer_close(&c->timer, on_timer_closed, c);
}

static void on_kill(void *arg)
{
    struct child *c = arg;
    dgm_process_kill(c->process);
    dgm_process_kill(c->process); /* twice is as good as once */
}

static void begin(void *arg)
{
    struct child *c = arg;
    dgm_loop *loop = dgm_loops_at(c->loops, 0);
    c->ms = uv_now(&loop->uv);
    dgm_timer_init(loop, &c->timer, on_kill, c);
    dgm_timer_init(loop, &c->pause_timer, on_pause_over, c);
    c->rc = dgm_process_start(
        loop, &c->options,
        (dgm_process_handler){on_line, on_error_line, on_exit_, c, on_channel_line, on_channel_end},
        &c->process, &c->err);
    if (c->rc) {
        dgm_timer_close(&c->timer, on_timer_closed, c);
        return;
    }
    c->pid = dgm_process_pid(c->process);
    if (c->options.channel_line_bytes && c->input) {
        dgm_process_send(c->process, dgm_str_from(c->input));
        dgm_process_end_channel(c->process);
        assert_true(dgm_process_channel_backlog(c->process) <= strlen(c->input));
    }
    if (c->input)
        dgm_process_write(c->process, dgm_str_from(c->input));
    if (c->input_bytes) {
        char *many = calloc(1, c->input_bytes);
        dgm_process_write(c->process, (dgm_str){many, c->input_bytes});
        free(many);
    }
    if (c->input)
        dgm_process_end_input(c->process);
    if (c->kill_ms)
        dgm_timer_start(&c->timer, c->kill_ms);
}

static struct child sh(const char *script)
{
    struct child c = {
        .argv = {"sh", "-c", script, NULL},
        .input = "",
        .options = {.max_line_bytes = 1000, .grace_ms = 200},
    };
    return c;
}

static void run(struct child *c)
{
    dgm_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    c->options.argv = c->argv;
    dgm_buf_init(&c->out, SIZE_MAX);
    dgm_buf_init(&c->error_out, SIZE_MAX);
    dgm_buf_init(&c->channel, SIZE_MAX);
    uv_sem_init(&c->done, 0);
    check_ok(dgm_loops_new(1, &c->loops, &err), err);
    check_ok(dgm_loops_start(c->loops, &err), err);
    dgm_loop_post(dgm_loops_at(c->loops, 0), begin, c);
    uv_sem_wait(&c->done);
}

static void end(struct child *c)
{
    dgm_loops_free(c->loops);
    uv_sem_destroy(&c->done);
    dgm_buf_done(&c->out);
    dgm_buf_done(&c->error_out);
    dgm_buf_done(&c->channel);
}

/* Processes of a group that still run. The dead may stay listed until somebody reaps them. */
static int count_group(int pgid)
{
    int n = 0;
    struct dirent *e;
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    while ((e = readdir(dir))) {
        char path[300], text[600];
        int group = 0;
        char status = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        FILE *f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
        if (!f)
            continue;
        size_t size = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[size] = '\0';
        const char *behind_name = strrchr(text, ')');
        if (behind_name && sscanf(behind_name, ") %c %*d %d", &status, &group) == 2)
            n += group == pgid && status != 'Z' && status != 'X';
    }
    closedir(dir);
    return n;
}

/* The kernel is given its time. */
static bool group_is_gone(int pgid)
{
    for (int i = 0; i < 3000; i++) {
        if (count_group(pgid) == 0)
            return true;
        usleep(10000);
    }
    return false;
}

/* ---- tests ----------------------------------------------------------------------------------------------- */

static void lines_come_as_they_are_written(void **state)
{
    struct child c = sh("echo one; echo; printf 'two\\nthree'; echo oops >&2; exit 3");
    (void)state;
    run(&c);
    check_ok(c.rc, c.err);
    check_str(c.out, "[one]W[]W[two]W[three]L");
    check_str(c.error_out, "[oops]W");
    assert_int_equal(c.how.status, 3);
    assert_int_equal(c.how.signal, 0);
    assert_false(c.how.killed);
    end(&c);
}

static void what_is_written_is_read(void **state)
{
    struct child c = sh("cat");
    (void)state;
    c.input = "hello\nworld\n";
    run(&c);
    check_str(c.out, "[hello]W[world]W");
    assert_int_equal(c.how.status, 0);
    end(&c);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    struct child c = {.argv = {"/nowhere/to be/found", NULL}};
    struct child d = sh("true");
    (void)state;
    run(&c);
    assert_int_equal(c.rc, DGM_UNAVAILABLE);
    assert_string_equal(
        c.err.msg, "cannot run the program \"/nowhere/to be/found\": No such file or directory");
    end(&c);
    d.options.cwd = "/nowhere";
    run(&d);
    assert_int_equal(d.rc, DGM_UNAVAILABLE);
    assert_non_null(strstr(d.err.msg, "/nowhere"));
    end(&d);
}

static void it_has_the_environment_that_it_is_given(void **state)
{
    static const char *const env[] = {"DGM_TEST_A=2", "DGM_TEST_B=x y", "PATH=/nowhere:/bin", NULL};
    struct child c = sh("echo $DGM_TEST_A $DGM_TEST_B $DGM_TEST_C; pwd");
    struct child d = sh("echo $DGM_TEST_C");
    (void)state;
    setenv("DGM_TEST_A", "1", 1);
    setenv("DGM_TEST_C", "3", 1);
    c.options.env = env;
    c.options.cwd = "/";
    run(&c);
    check_str(c.out, "[2 x y]W[/]W");
    end(&c);
    run(&d); /* without one it has ours */
    check_str(d.out, "[3]W");
    end(&d);
}

static void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void programs_are_found_as_execvp_finds_them(void **state)
{
    char folder[] = "/tmp/dgm-find-XXXXXX", path[PATH_MAX], env_path[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(folder, "runs", "echo script without a first line\n", 0755);
    write_file(folder, "plain", "#!/bin/sh\n", 0644);
    snprintf(env_path, sizeof env_path, "PATH=/nowhere:%s:/bin", folder);
    const char *const env[] = {env_path, NULL};
    const struct {
        const char *name, *cwd, *want; /* want: of the message, or the path */
        bool found;
    } rows[] = {
        {"sh", NULL, "/bin/sh", true},
        {"./runs", folder, "./runs", true},
        {"/bin/sh", "/", "/bin/sh", true},
        {"./runs", NULL, "cannot run the program \"./runs\": No such file", false},
        {"./plain", folder, "it is not executable (chmod +x)", false},
        {"plain", NULL, "it is not executable (chmod +x)", false},
        {"no-such-program", NULL, "cannot find the program \"no-such-program\" in PATH", false},
        {"/tmp", NULL, "Is a directory", false},
        {"sh", "/nowhere", "in the folder /nowhere: No such file", false},
        {"sh", "/etc/passwd", "Not a directory", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_err err = {0};
        dgm_code rc = dgm_process_find(rows[i].name, env, rows[i].cwd, path, &err);
        assert_int_equal(rc, rows[i].found ? DGM_OK : DGM_UNAVAILABLE);
        if (rows[i].found)
            assert_string_equal(path, rows[i].want);
        else if (!strstr(err.msg, rows[i].want))
            fail_msg("\"%s\" is not in: %s", rows[i].want, err.msg);
    }
    struct child c = {.argv = {"./runs", NULL}, .options = {.cwd = folder}};
    run(&c);
    check_str(c.out, "[script without a first line]W");
    end(&c);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0); // NOLINT: a folder of our own
}

static void a_signal_that_kills_it_is_reported(void **state)
{
    struct child c = sh("kill -SEGV $$");
    (void)state;
    run(&c);
    assert_int_equal(c.how.status, -1);
    assert_int_equal(c.how.signal, SIGSEGV);
    end(&c);
}

static void kill_is_term_first(void **state)
{
    struct child c = sh("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    (void)state;
    c.kill_at = 1; /* not sooner: it has its trap by then */
    c.options.grace_ms = 60000;
    run(&c);
    check_str(c.out, "[ready]W[bye]W");
    assert_int_equal(c.how.status, 7);
    assert_true(c.how.killed);
    end(&c);
}

static void what_ignores_term_is_killed(void **state)
{
    struct child c = sh("trap '' TERM; echo ready; while :; do sleep 10; done");
    (void)state;
    c.kill_at = 1;
    run(&c);
    assert_int_equal(c.how.signal, SIGKILL);
    assert_true(group_is_gone(c.pid));
    end(&c);
}

static void grandchildren_go_with_it(void **state)
{
    struct child c = sh("sleep 100 & sleep 100 & echo started; exit 0");
    (void)state;
    run(&c);
    check_str(c.out, "[started]W");
    assert_int_equal(c.how.status, 0);
    assert_true(c.ms < 60000); /* they hold the pipe; the parent does not wait for them */
    assert_true(group_is_gone(c.pid));
    end(&c);
}

static void one_that_left_its_group_is_not_waited_for(void **state)
{
    /* field 6 is the session: it has left when that is its own */
    struct child c = sh("setsid sleep 300 & until [ $(cut -d' ' -f6 /proc/$!/stat) = $! ]; "
                        "do :; done; echo $!");
    int stranger = 0;
    (void)state;
    run(&c);
    dgm_buf_add_char(&c.out, '\0');
    assert_int_equal(sscanf(c.out.p, "[%d]W", &stranger), 1);
    assert_int_equal(kill(stranger, SIGKILL), 0); /* it is still there */
    assert_true(c.ms < 60000);
    end(&c);
}

static void a_line_without_end_comes_in_pieces(void **state)
{
    struct child c = sh("head -c 2500 /dev/zero | tr '\\0' x; echo; echo z");
    (void)state;
    run(&c);
    assert_int_equal(c.n_lines, 4); /* 1000, 1000, 500, and z */
    assert_int_equal(c.n_bytes, 2501);
    check_str(c.out, "[z]W");
    end(&c);
}

static void a_line_of_the_largest_size_is_whole(void **state)
{
    struct child c = sh("printf '%01000d\\n%01000d' 1 2");
    (void)state;
    run(&c);
    assert_int_equal(c.n_lines, 2);
    assert_int_equal(c.n_bytes, 2000);
    end(&c);
}

static void megabytes_pass_in_little_memory(void **state)
{
    struct child c = sh("head -c 20000000 /dev/zero");
    (void)state;
    run(&c);
    assert_int_equal(c.n_bytes, 20000000);
    end(&c);
}

static void it_waits_while_its_reader_does(void **state)
{
    /* far more than a pipe holds: it can only go on when we read */
    struct child c = sh("yes 0123456789012345678901234567890123456789 | head -n 20000");
    (void)state;
    c.pause_at = 10;
    run(&c);
    assert_int_equal(c.n_lines, 20000);
    assert_true(c.n_while_paused < 2000); /* what one read had brought */
    end(&c);
}

static void output_of_the_dead_is_kept_for_a_paused_reader(void **state)
{
    struct child c = sh("yes abc | head -n 10000"); /* fits into the pipe: it is gone at once */
    (void)state;
    c.pause_at = 1;
    run(&c);
    assert_int_equal(c.n_lines, 10000);
    end(&c);
}

static void input_that_is_not_read_blocks_nothing(void **state)
{
    struct child c = sh("echo not interested");
    struct child d = sh("exec <&-; echo closed; sleep 0.05");
    (void)state;
    c.input_bytes = d.input_bytes = 10000000;
    run(&c);
    check_str(c.out, "[not interested]W");
    assert_int_equal(c.how.status, 0);
    end(&c);
    run(&d);
    check_str(d.out, "[closed]W");
    end(&d);
}

static void it_is_seen_to_end_without_pidfd_too(void **state)
{
    struct child c = sh("echo a; exit 5"), d = sh("sleep 100");
    (void)state;
    c.options.without_pidfd = d.options.without_pidfd = true;
    run(&c);
    check_str(c.out, "[a]W");
    assert_int_equal(c.how.status, 5);
    end(&c);
    d.kill_ms = 50;
    run(&d);
    assert_int_equal(d.how.signal, SIGTERM);
    end(&d);
}

static void it_starts_with_nothing_of_ours(void **state)
{
    /* Signals at their defaults, none blocked, no file of ours open. Of the masks only the last seven
     * digits: signals 32 and 33 belong to the C library, and whoever started us may ignore them. */
    struct child c = sh("sed -nE 's/^(SigBlk|SigIgn):.*(.{7})$/\\1 \\2/p' /proc/self/status; "
                        "ls /proc/self/fd | tr '\\n' ' '");
    int extra = dup(0); /* not closed by exec */
    (void)state;
    run(&c);
    check_str(c.out, "[SigBlk 0000000]W[SigIgn 0000000]W[0 1 2 3 ]L");
    close(extra);
    end(&c);
}

static void it_ends_with_its_loop(void **state)
{
    struct child c = sh("trap '' TERM; sleep 100 & sleep 100");
    dgm_err err = {0};
    (void)state;
    c.options.argv = c.argv;
    c.options.grace_ms = 60000;
    dgm_buf_init(&c.out, SIZE_MAX);
    dgm_buf_init(&c.error_out, SIZE_MAX);
    uv_sem_init(&c.done, 0);
    check_ok(dgm_loops_new(1, &c.loops, &err), err);
    check_ok(dgm_loops_start(c.loops, &err), err);
    dgm_loop_post(dgm_loops_at(c.loops, 0), begin, &c);
    dgm_loops_stop(c.loops);
    uv_sem_wait(&c.done);
    assert_int_equal(c.how.signal, SIGKILL);
    assert_true(c.ms < 45000); /* its grace would be longer */
    assert_true(group_is_gone(c.pid));
    end(&c);
}

/* With everything in its group. */
static void it_dies_with_us(void **state)
{
    int pipes[2];
    char text[32] = {0};
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) { /* a server that is killed in the middle */
        static struct child c;
        c = sh("sleep 100 & sleep 100; true");
        c.input = NULL;
        c.options.argv = c.argv;
        dgm_loops_new(1, &c.loops, &c.err);
        dgm_loops_start(c.loops, &c.err);
        uv_sem_init(&c.done, 0);
        dgm_loop_post(dgm_loops_at(c.loops, 0), begin, &c);
        dgm_loop_post(dgm_loops_at(c.loops, 0), on_pause_timer_closed, &c); /* it has begun */
        uv_sem_wait(&c.done);
        dprintf(pipes[1], "%d\n", c.pid);
        kill(getpid(), SIGKILL);
    }
    close(pipes[1]);
    assert_true(read(pipes[0], text, sizeof text - 1) > 0);
    close(pipes[0]);
    waitpid(pid, NULL, 0);
    assert_true(atoi(text) > 1);
    assert_true(group_is_gone(atoi(text)));
}

/* ---- the channel ------------------------------------------------------------------------------------------ */

static struct child sh_with_channel(const char *script)
{
    struct child c = sh(script);
    c.options.channel_line_bytes = 1000;
    return c;
}

static void a_channel_has_both_directions_beside_the_output(void **state)
{
    struct child c = sh_with_channel("cat; read -r x <&3; echo \"got $x\" >&3; echo a log; read -r "
                                     "x <&3 || echo end >&3; echo oops >&2; printf rest >&3");
    (void)state;
    c.input = "hello\n";
    run(&c);
    check_str(c.channel, "[got hello]W[end]W[rest]L.");
    check_str(c.out, "[a log]W");
    check_str(c.error_out, "[oops]W");
    assert_int_equal(c.how.status, 0);
    end(&c);
}

static void a_channel_that_the_child_closes_ends(void **state)
{
    struct child c = sh_with_channel("echo one >&3; exec 3>&-; echo two; exit 4");
    (void)state;
    run(&c);
    check_str(c.channel, "[one]W.");
    check_str(c.out, "[two]W");
    assert_int_equal(c.how.status, 4);
    end(&c);
}

static void a_long_line_of_a_channel_comes_in_pieces(void **state)
{
    struct child c = sh_with_channel("head -c 2500 /dev/zero >&3; echo >&3");
    (void)state;
    run(&c);
    assert_int_equal(c.n_lines, 3);
    assert_int_equal(c.n_bytes, 2500);
    end(&c);
}

static void a_channel_waits_while_its_reader_does(void **state)
{
    struct child c =
        sh_with_channel("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&3");
    (void)state;
    c.pause_at = 10;
    run(&c);
    assert_int_equal(c.n_lines, 20000);
    assert_true(c.n_while_paused < 20000 - 10); /* of one read */
    check_bytes_(c.channel.p + c.channel.n - 1, 1, ".", 1, __FILE__, __LINE__);
    end(&c);
}

static void a_child_has_four_descriptors_with_a_channel(void **state)
{
    struct child c = sh_with_channel("exec ls /proc/self/fd");
    (void)state;
    run(&c);
    check_str(c.out, "[0]W[1]W[2]W[3]W[4]W"); /* 4: the folder itself */
    end(&c);
}

DGM_TEST_MAIN(
    dgm_test(a_channel_has_both_directions_beside_the_output),
    dgm_test(a_channel_that_the_child_closes_ends),
    dgm_test(a_long_line_of_a_channel_comes_in_pieces),
    dgm_test(a_channel_waits_while_its_reader_does),
    dgm_test(a_child_has_four_descriptors_with_a_channel), dgm_test(lines_come_as_they_are_written),
    dgm_test(what_is_written_is_read), dgm_test(a_program_that_is_not_there_is_named),
    dgm_test(it_has_the_environment_that_it_is_given),
    dgm_test(programs_are_found_as_execvp_finds_them), dgm_test(a_signal_that_kills_it_is_reported),
    dgm_test(kill_is_term_first), dgm_test(what_ignores_term_is_killed),
    dgm_test(grandchildren_go_with_it), dgm_test(one_that_left_its_group_is_not_waited_for),
    dgm_test(a_line_without_end_comes_in_pieces), dgm_test(a_line_of_the_largest_size_is_whole),
    dgm_test(megabytes_pass_in_little_memory), dgm_test(it_waits_while_its_reader_does),
    dgm_test(output_of_the_dead_is_kept_for_a_paused_reader),
    dgm_test(input_that_is_not_read_blocks_nothing), dgm_test(it_is_seen_to_end_without_pidfd_too),
    dgm_test(it_starts_with_nothing_of_ours), dgm_test(it_ends_with_its_loop),
    dgm_test(it_dies_with_us))
