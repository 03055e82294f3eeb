/*
 * cli_completion.c - what bash, zsh and fish complete, made from the table.
 *
 * The words a place may hold are written into the scripts: completing never runs the program.
 */
#include "cli.h"

#include <string.h>

/* ---- what the three share -------------------------------------------------------------------------- */

/* The words of a kind with something between them; each shell reads them unquoted. */
static void words(const dgm_cli_kind *kind, FILE *out)
{
    const char *word;
    for (size_t i = 0; kind->word && (word = kind->word(i)); i++)
        fprintf(out, "%s%s", i ? " " : "", word);
}

/* Inside single quotes: each character of `special` gets a backslash, a quote what the shell wants. */
static void quoted(const char *text, const char *special, const char *quote, FILE *out)
{
    for (const char *p = text; *p; p++) {
        if (*p == '`')
            continue;
        if (*p == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *p))
            putc('\\', out);
        putc(*p, out);
    }
}

/* ---- bash -------------------------------------------------------------------------------------------- */

static void bash_reply(const dgm_cli_kind *kind, FILE *out)
{
    if (kind->file) {
        fputs("_dragoman_files", out);
    } else if (kind->word) {
        fputs("_dragoman_words '", out);
        words(kind, out);
        putc('\'', out);
    } else {
        putc(':', out);
    }
}

static void bash_options(const dgm_cli_command *c, FILE *out)
{
    fprintf(out, "    '%s') options='", c == &dgm_cli_root ? "" : c->name);
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        fprintf(out, "--%s ", o->name);
        if (o->letter)
            fprintf(out, "-%c ", o->letter);
    }
    fputs("' valued=' ", out);
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        if (o->value)
            fprintf(out, "--%s ", o->name);
        if (o->value && o->letter)
            fprintf(out, "-%c ", o->letter);
    }
    fputs("' ;;\n", out);
}

static void bash_values(const dgm_cli_command *c, FILE *out)
{
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        if (!o->value)
            continue;
        fprintf(out, "    '%s --%s'", c->name, o->name);
        if (o->letter)
            fprintf(out, " | '%s -%c'", c->name, o->letter);
        fputs(") ", out);
        bash_reply(o->kind, out);
        fputs("; return ;;\n", out);
    }
}

static void bash_arguments(const dgm_cli_command *c, FILE *out)
{
    size_t place = 0;
    for (const dgm_cli_argument *a = c->arguments; a && a->name; a++, place++) {
        if (a->repeats)
            fprintf(out, "    '%s '*) ", c->name);
        else
            fprintf(out, "    '%s %zu') ", c->name, place);
        bash_reply(a->kind, out);
        fputs(" ;;\n", out);
    }
}

void dgm_cli_bash(FILE *out)
{
    fputs("# bash completion of dragoman, made by `dragoman __completion bash`\n"
          "\n"
          "_dragoman_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
          "\n"
          "_dragoman_files()\n"
          "{\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "}\n"
          "\n"
          "_dragoman()\n"
          "{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} before='' word command='' options='' valued=''\n"
          "    local -i i place=0\n"
          "    COMPREPLY=()\n"
          "    # readline makes three words of --from=x: an \"=\" stands for nothing here\n"
          "    if [[ $cur == = ]]; then cur=''; fi\n"
          "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
          "        word=${COMP_WORDS[i]}\n"
          "        if ((i == COMP_CWORD)) || [[ $word == = ]]; then continue; fi\n"
          "        if [[ -n $before ]]; then\n"
          "            before='' # the value of the option before it\n"
          "        elif [[ $word == -?* ]]; then\n"
          "            if [[ $valued == *\" $word \"* ]]; then before=$word; fi\n"
          "        elif [[ -z $command ]]; then\n"
          "            command=$word\n"
          "            _dragoman_options\n"
          "        else\n"
          "            place+=1\n"
          "        fi\n"
          "    done\n"
          "    case \"$command $before\" in\n",
          out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden)
            bash_values(*c, out);
    }
    fputs("    esac\n"
          "    if [[ $cur == -* ]]; then\n"
          "        _dragoman_options\n"
          "        _dragoman_words \"$options\"\n"
          "        return\n"
          "    fi\n"
          "    case \"$command $place\" in\n"
          "    ' 0') ",
          out);
    bash_reply(dgm_cli_root.arguments[0].kind, out);
    fputs(" ;;\n", out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden)
            bash_arguments(*c, out);
    }
    fputs("    esac\n"
          "}\n"
          "\n"
          "_dragoman_options()\n"
          "{\n"
          "    case $command in\n",
          out);
    bash_options(&dgm_cli_root, out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden)
            bash_options(*c, out);
    }
    fputs("    esac\n"
          "}\n"
          "\n"
          "complete -F _dragoman dragoman\n",
          out);
}

/* ---- zsh --------------------------------------------------------------------------------------------- */

#define ZSH_SPECIAL "\\[]:"
#define ZSH_QUOTE "'\\''"

static void zsh_kind(const char *name, const dgm_cli_kind *kind, FILE *out)
{
    fprintf(out, ":%s:", name);
    if (kind->file) {
        fputs("_files", out);
    } else if (kind->word) {
        putc('(', out);
        words(kind, out);
        putc(')', out);
    } else {
        putc(' ', out); /* a value, and nothing to offer */
    }
}

static void zsh_option(const dgm_cli_option *o, FILE *out)
{
    bool ends = strcmp(o->name, "help") == 0 || strcmp(o->name, "version") == 0;
    fputs(" \\\n            '", out);
    if (ends)
        fputs("(- *)", out);
    else if (o->letter)
        fprintf(out, "(-%c --%s)", o->letter, o->name);
    if (o->letter)
        fprintf(out, "'{-%c%s,--%s%s}'", o->letter, o->value ? "+" : "", o->name,
                o->value ? "=" : "");
    else
        fprintf(out, "--%s%s", o->name, o->value ? "=" : "");
    putc('[', out);
    quoted(o->about, ZSH_SPECIAL, ZSH_QUOTE, out);
    putc(']', out);
    if (o->value)
        zsh_kind(o->value, o->kind, out);
    putc('\'', out);
}

static void zsh_command(const dgm_cli_command *c, FILE *out)
{
    fprintf(out, "        %s)\n            _arguments -S", c->name);
    for (const dgm_cli_option *o = c->options; o && o->name; o++)
        zsh_option(o, out);
    for (const dgm_cli_argument *a = c->arguments; a && a->name; a++) {
        fprintf(out, " \\\n            '%s", a->repeats ? "*" : a->required ? "" : ":");
        zsh_kind(a->name, a->kind, out);
        putc('\'', out);
    }
    fputs("\n            ;;\n", out);
}

void dgm_cli_zsh(FILE *out)
{
    fputs("#compdef dragoman\n"
          "# zsh completion of dragoman, made by `dragoman __completion zsh`\n"
          "\n"
          "_dragoman()\n"
          "{\n"
          "    local curcontext=$curcontext state line\n"
          "    local -a commands\n"
          "    typeset -A opt_args\n"
          "    commands=(\n",
          out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if ((*c)->hidden)
            continue;
        fprintf(out, "        '%s:", (*c)->name);
        quoted((*c)->about, ZSH_SPECIAL, ZSH_QUOTE, out);
        fputs("'\n", out);
    }
    fputs("    )\n    _arguments -C", out);
    for (const dgm_cli_option *o = dgm_cli_root.options; o->name; o++)
        zsh_option(o, out);
    fputs(" \\\n            '1:command:->command' \\\n            '*::argument:->argument'\n"
          "    case $state in\n"
          "    command) _describe -t commands command commands ;;\n"
          "    argument)\n"
          "        case $words[1] in\n",
          out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden)
            zsh_command(*c, out);
    }
    fputs("        esac\n"
          "        ;;\n"
          "    esac\n"
          "}\n"
          "\n"
          "if [[ $funcstack[1] == _dragoman ]]; then\n"
          "    _dragoman \"$@\"\n"
          "else\n"
          "    compdef _dragoman dragoman # sourced, not found on fpath\n"
          "fi\n",
          out);
}

/* ---- fish -------------------------------------------------------------------------------------------- */

#define FISH_SPECIAL "\\"
#define FISH_QUOTE "\\'"

static void fish_about(const char *about, FILE *out)
{
    fputs(" -d '", out);
    quoted(about, FISH_SPECIAL, FISH_QUOTE, out);
    fputs("'\n", out);
}

static void fish_kind(const dgm_cli_kind *kind, FILE *out)
{
    if (kind->file) {
        fputs(" -r -F", out);
    } else if (kind->word) {
        fputs(" -x -a '", out);
        words(kind, out);
        putc('\'', out);
    } else {
        fputs(" -x", out);
    }
}

static void fish_options(const dgm_cli_command *c, FILE *out)
{
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        fprintf(out, "complete -c dragoman -n '__dragoman_at %s' -l %s",
                c == &dgm_cli_root ? "\"\"" : c->name, o->name);
        if (o->letter)
            fprintf(out, " -s %c", o->letter);
        if (o->value)
            fish_kind(o->kind, out);
        fish_about(o->about, out);
    }
}

static void fish_arguments(const dgm_cli_command *c, FILE *out)
{
    size_t place = 0;
    for (const dgm_cli_argument *a = c->arguments; a && a->name; a++, place++) {
        if (!a->kind->file && !a->kind->word)
            continue;
        fprintf(out, "complete -c dragoman -n '__dragoman_at %s", c->name);
        if (!a->repeats)
            fprintf(out, " %zu", place);
        if (a->kind->file) {
            fputs("' -F\n", out);
            continue;
        }
        fputs("' -a '", out);
        words(a->kind, out);
        putc('\'', out);
        fish_about(a->about, out);
    }
}

void dgm_cli_fish(FILE *out)
{
    fputs("# fish completion of dragoman, made by `dragoman __completion fish`\n"
          "\n"
          "# is this the command on the line so far (\"\": none yet), with so many arguments?\n"
          "function __dragoman_at\n"
          "    set -l words (commandline -opc)\n"
          "    set -l found\n"
          "    for word in $words[2..-1]\n"
          "        string match -q -- '-*' $word\n"
          "        or set -a found $word\n"
          "    end\n"
          "    test \"$found[1]\" = \"$argv[1]\"\n"
          "    or return 1\n"
          "    test (count $argv) = 1\n"
          "    or test (math (count $found) - 1) = $argv[2]\n"
          "end\n"
          "\n"
          "complete -c dragoman -f\n",
          out);
    fish_options(&dgm_cli_root, out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if ((*c)->hidden)
            continue;
        fprintf(out, "complete -c dragoman -n '__dragoman_at \"\"' -a %s", (*c)->name);
        fish_about((*c)->about, out);
    }
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden) {
            fish_options(*c, out);
            fish_arguments(*c, out);
        }
    }
}
