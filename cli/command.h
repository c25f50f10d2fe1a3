/* command - the subcommands of `holdcell`. argv[0] is the subcommand's own name;
 * each returns the exit status of the program. */
#ifndef HC_COMMAND_H
#define HC_COMMAND_H

int command_serve(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_stop(int argc, char **argv);
int command_gateway(int argc, char **argv);
int command_token(int argc, char **argv);
int command_version(int argc, char **argv);
int command_profiles(int argc, char **argv);
int command_audit(int argc, char **argv);

enum { EXIT_USAGE = 2 };

#endif
