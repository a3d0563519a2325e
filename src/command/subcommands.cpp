// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/subcommands.hpp"

#include "command/admin.hpp"
#include "command/doctor.hpp"
#include "command/run.hpp"

#include <array>
#include <string>

namespace command {

namespace {

using program_options::bool_switch;
using program_options::value;

constexpr std::string_view run_description =
    R"(Acquires the lock KEY, runs the command while it renews the lease, and releases
the lock when the command has ended. Waits until the lock is free.

The command gets COLOCK_KEY and COLOCK_FENCE in its environment. COLOCK_FENCE is
the fencing token, which is empty on a backend without one. With several keys,
both have one line per key.

A duration is a whole number with a unit: 500ms, 30s, 5m, 1h. The ttl has to be
at least 3 * (grace + 0.5 s).

SIGTERM, SIGINT and SIGHUP are forwarded to the process group of the command.
What is left of the group after the grace is killed, and the lock is released
when the group is empty. SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT and
SIGTSTP are forwarded, too. If the lock is going to be lost, the command gets
SIGTERM, and SIGKILL at least 0.5 s before the lease ends.

If this process is killed, the kernel kills the command. Processes that the
command has started, setuid programs and daemons are not killed: the lock ends
with the command itself.)";

constexpr std::string_view lead_description =
    R"(Runs the command while this process leads. One of all processes that lead the
same KEY is the leader: the one that holds the lock KEY. The others wait.

The command is run as 'colock run' runs it, and COLOCK_FENCE is the number of
the term. The term ends with the command. The lock is then released, and the
command is started again when this process leads again. After a command that
has failed, has lost the lock, or has ended within 1 s, the process waits before
it tries to lead again: 1 s, doubled after each further failure, at most 30 s.

SIGTERM, SIGINT and SIGHUP end the command, the term and colock, with the exit
code of the command. A command that SIGINT or SIGQUIT has ended ends colock,
too, and so does one that cannot be executed.)";

constexpr std::string_view ls_description = R"(Lists the locks that are held, or those whose keys begin with PREFIX.)";

constexpr std::string_view break_description =
    R"(Removes the lock KEY from all its holders, and prints what they held. A holder
that runs under 'colock run' is ended when it learns of the loss, at the next
renewal. Asks before it does so if it runs on a terminal; otherwise --yes is
needed.)";

constexpr std::string_view purge_description =
    R"(Removes locks whose ttl has passed from the server, and prints them. Such locks
exclude nobody; they only need memory.)";

constexpr std::string_view detach_description =
    R"(Acquires the lock KEY, writes a ticket to FILE, and ends. The lock is held for
the ttl. 'colock adopt' takes it over before that, in this or in another
process, such as a later step of a script. The ticket is a secret.

ZooKeeper locks cannot be detached, because they belong to the session of a
process.)";

constexpr std::string_view adopt_description =
    R"(Takes over the lock of a ticket that 'colock detach' has written, and removes
the file. Then runs the command as 'colock run' does.)";

constexpr std::string_view doctor_description =
    R"(Connects, checks what the page of the backend asks for, and prints one line for
each check: OK, WARN or FAIL, the value that was found, and what to do. Exits
with 1 if a line is FAIL.

Changes nothing but the lock colock-doctor, which it acquires and releases.)";

} // namespace

void add_common_options(program_options::options_description& options)
{
    options.add_options()                                                                 //
        ("backend", value<std::string>()->value_name("URL"),                              //
            "server, such as redis://host or zookeeper://host; default: COLOCK_BACKEND")  //
        ("verbose,v", bool_switch(), "log the events of locks and connections to stderr") //
        ("quiet,q", bool_switch(), "write only errors to stderr")                         //
        ("help,h", bool_switch(), "print this text");
}

std::span<const subcommand> all_subcommands()
{
    static const std::array subcommands{
        subcommand{
            .name = "run",
            .synopsis = "KEY [OPTION]... [-c LINE | -- COMMAND...]",
            .summary = "run a command under a lock",
            .description = run_description,
            .has_child = true,
            .add_options = &add_run_options,
            .execute = &run,
        },
        subcommand{
            .name = "lead",
            .synopsis = "KEY [OPTION]... [-c LINE | -- COMMAND...]",
            .summary = "run a command while this process leads",
            .description = lead_description,
            .has_child = true,
            .add_options = &add_lead_options,
            .execute = &lead,
        },
        subcommand{
            .name = "ls",
            .synopsis = "[PREFIX] [OPTION]...",
            .summary = "list the locks that are held",
            .description = ls_description,
            .add_options = &add_ls_options,
            .execute = &ls,
        },
        subcommand{
            .name = "break",
            .synopsis = "KEY [OPTION]...",
            .summary = "remove a lock from its holders",
            .description = break_description,
            .add_options = &add_break_options,
            .execute = &break_key,
        },
        subcommand{
            .name = "purge",
            .synopsis = "[OPTION]...",
            .summary = "remove expired locks from the server",
            .description = purge_description,
            .add_options = &add_purge_options,
            .execute = &purge,
        },
        subcommand{
            .name = "detach",
            .synopsis = "KEY --ticket FILE --ttl D [OPTION]...",
            .summary = "acquire a lock that outlives this process",
            .description = detach_description,
            .add_options = &add_detach_options,
            .execute = &detach,
        },
        subcommand{
            .name = "adopt",
            .synopsis = "--ticket FILE [OPTION]... [-c LINE | -- COMMAND...]",
            .summary = "run a command under a detached lock",
            .description = adopt_description,
            .has_child = true,
            .add_options = &add_adopt_options,
            .execute = &adopt,
        },
        subcommand{
            .name = "doctor",
            .synopsis = "[OPTION]...",
            .summary = "check the servers",
            .description = doctor_description,
            .add_options = &add_doctor_options,
            .execute = &doctor,
        },
    };
    return subcommands;
}

} // namespace command
