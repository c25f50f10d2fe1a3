/*
 * inject - makes another process carry out one system call and tells what came of it, as if
 * that process had been taken over:
 *
 *     inject PID CALL [ARGUMENT...]
 *
 * CALL is a number; an argument is a number, or text behind an `s`, which is put on the
 * process' stack and passed by address (`s/etc/passwd`). Prints "= VALUE", an errno as
 * "= -ERRNO", "killed SIGNAL", or "replaced" when an exec succeeded. The process goes on; the
 * call that it was in says EINTR to it. Runs as root and traces: x86-64 alone, else status 77.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { ARGS = 6, NO_SUPPORT = 77, TEXTS = 1024, BELOW_STACK = 4096 };

#ifdef __x86_64__

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* The wait status of the next stop; 0 when the process has ended, told already. */
static int next_stop(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, __WALL) < 0)
        die("wait");
    if (WIFSIGNALED(status))
        printf("killed %d\n", WTERMSIG(status));
    else if (WIFEXITED(status))
        printf("exited %d\n", WEXITSTATUS(status));
    return WIFSTOPPED(status) ? status : 0;
}

/* Numbers, or addresses of texts that are copied to below the stack. */
static void read_arguments(pid_t pid, unsigned long stack, int argc, char **argv,
                           unsigned long args[ARGS])
{
    char texts[TEXTS] = "";
    size_t used = 0;
    const unsigned long at = stack - BELOW_STACK;

    for (int i = 0; i < argc; i++) {
        size_t n = strlen(argv[i] + 1) + 1;

        if (argv[i][0] != 's') {
            args[i] = strtoul(argv[i], NULL, 0);
            continue;
        }
        if (n > sizeof texts - used) {
            errno = E2BIG;
            die("arguments");
        }
        memcpy(texts + used, argv[i] + 1, n);
        args[i] = at + used;
        used += n;
    }
    struct iovec from = { texts, sizeof texts }, to = { (void *)at, sizeof texts };
    if (process_vm_writev(pid, &from, 1, &to, 1, 0) != (ssize_t)sizeof texts)
        die("write to its stack");
}

static void set_registers(pid_t pid, const struct user_regs_struct *regs)
{
    if (ptrace(PTRACE_SETREGS, pid, NULL, regs) < 0)
        die("set registers");
}

static int is_behind_a_call(pid_t pid, const struct user_regs_struct *regs)
{
    uint16_t code = 0;
    struct iovec to = { &code, sizeof code }, from = { (void *)(regs->rip - 2), sizeof code };

    if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof code)
        die("read its code");
    return code == 0x050f;
}

/* Stops it in a system call: one that works at the moment is let go on, and looked at again. */
static void stop_in_call(pid_t pid, struct user_regs_struct *ret)
{
    enum { TRIES = 10000 }; /* of 1 ms */

    for (int i = 0; i < TRIES; i++) {
        if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 || next_stop(pid) == 0)
            die("interrupt");
        if (ptrace(PTRACE_GETREGS, pid, NULL, ret) < 0)
            die("get registers");
        if (is_behind_a_call(pid, ret))
            return;
        if (ptrace(PTRACE_CONT, pid, NULL, 0) < 0)
            die("let go on");
        usleep(1000);
    }
    errno = EAGAIN;
    die("it is in no system call");
}

static int run(pid_t pid, unsigned long call, int argc, char **argv)
{
    struct user_regs_struct before, regs;
    unsigned long args[ARGS] = { 0 };
    int status = 0;

    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) < 0)
        die("seize");
    stop_in_call(pid, &before);
    read_arguments(pid, before.rsp, argc, argv, args);
    regs = before;
    regs.rip -= 2; /* the call goes where the process is: to the instruction of its present one */
    regs.orig_rax = (unsigned long)-1; /* the kernel restarts nothing */
    regs.rax = call;
    regs.rdi = args[0], regs.rsi = args[1], regs.rdx = args[2];
    regs.r10 = args[3], regs.r8 = args[4], regs.r9 = args[5];
    set_registers(pid, &regs);
    /* Twice: into the call, and out of it. Another stop in between is an exec's trap. */
    for (int i = 0; i < 2; i++) {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, 0) < 0)
            die("go on");
        status = next_stop(pid);
        if (status == 0)
            return 0;
        if (WSTOPSIG(status) == SIGSYS) {
            printf("killed %d\n", SIGSYS);
            return 0;
        }
        if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            i--;
    }
    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        die("get registers");
    if (regs.rip != before.rip) {
        printf("replaced\n");
        return 0;
    }
    printf("= %ld\n", (long)regs.rax);
    before.orig_rax = (unsigned long)-1;
    before.rax = (unsigned long)-EINTR;
    set_registers(pid, &before);
    return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? 2 : 0;
}

#else

static int run(pid_t pid, unsigned long call, int argc, char **argv)
{
    (void)pid, (void)call, (void)argc, (void)argv;
    return NO_SUPPORT;
}

#endif

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 3 + ARGS) {
        fprintf(stderr, "usage: inject PID CALL [NUMBER|sTEXT]...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    return run((pid_t)strtol(argv[1], NULL, 10), strtoul(argv[2], NULL, 0), argc - 3, argv + 3);
}
