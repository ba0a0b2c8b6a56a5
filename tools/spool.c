/*
 * spool.c - the table of commands, and what is common to them: help, version, the number of operands.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cmd.h"

static const struct command *const commands[] = {&cmd_check, &cmd_ls};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int print_help(void) {
    puts("usage: spool COMMAND ...\n"
         "\n"
         "Works on the database of a spoolfs that is not mounted.\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("    %s %-*s %s\n", commands[i]->name, 25 - (int)strlen(commands[i]->name), commands[i]->operands,
               commands[i]->summary);
    puts("\n"
         "    -h, --help                 print this text, or that of the command before it\n"
         "    -V, --version              print the version");
    return 0;
}

static int print_command_help(const struct command *command) {
    printf("usage: spool %s %s\n\n%s", command->name, command->operands, command->help);
    return 0;
}

static int print_version(void) {
    printf("spool %s\n", SPOOL_VERSION);
    return 0;
}

static int refuse(const char *problem, const char *word) {
    fprintf(stderr, "spool: %s%s: see spool --help\n", problem, word);
    return EX_USAGE;
}

static int run(const struct command *command, char **operands) {
    int count = 0;

    if (*operands != NULL && strcmp(*operands, "--") == 0)
        operands++;
    else if (*operands != NULL && (*operands)[0] == '-')
        return refuse("there is no option ", *operands);
    while (operands[count] != NULL)
        count++;
    if (count < command->operand_count)
        return refuse("an operand is missing after ", command->name);
    int most = command->operand_count + command->optional_count;
    if (count > most)
        return refuse("there is one operand too many: ", operands[most]);
    return command->run(operands);
}

static int choose(char **words) {
    const struct command *command = NULL;

    if (*words == NULL)
        return refuse("a command is missing", "");
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, *words) == 0)
            command = commands[i];
    if (command != NULL)
        words++;
    if (*words != NULL && (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0))
        return command != NULL ? print_command_help(command) : print_help();
    if (command != NULL)
        return run(command, words);
    if (strcmp(*words, "--version") == 0 || strcmp(*words, "-V") == 0)
        return print_version();
    return refuse((*words)[0] == '-' ? "there is no option " : "there is no command ", *words);
}

int main(int argc, char **argv) {
    int result = choose(argc > 0 ? argv + 1 : argv);

    if (fclose(stdout) != 0) {
        perror("spool: cannot write to the standard output");
        return EX_IOERR;
    }
    return result;
}
