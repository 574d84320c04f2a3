# bash completion for berth(1)                                  -*- shell-script -*-
# Jobs, nodes and images are asked from the daemon, within a second or not at all (or within
# BERTH_COMPLETION_TIMEOUT seconds). Nothing but bash is needed. Functions below use these variables
# of _berth: cur, prev, program, socket.

_berth_names() { # ARGUMENT...: first column of the table that they print; an array without its indices
    timeout "${BERTH_COMPLETION_TIMEOUT:-1}" "$program" ${socket:+--socket "$socket"} "$@" \
        2>/dev/null | awk 'NR > 1 { sub(/\[.*/, "", $1); print $1 }'
}

_berth_words() { # WORD...: those that begin as what is typed
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_berth_nodes() { # the last of names separated by commas
    local before=
    [[ $cur == *,* ]] && before=${cur%,*},
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_berth_names node ls)" -- "${cur##*,}")
}

_berth_node_change() { # OPTION...
    case $prev in
    --reason | -r) ;;
    *) case $cur in
        -*) _berth_words "$@" ;;
        *) _berth_nodes ;;
        esac ;;
    esac
}

_berth_job_change() { # OPTION...: of verbs that change a job
    case $prev in
    --reason | -r) ;;
    *) _berth_words $(_berth_names ls) --reason "$@" --json --help ;;
    esac
}

_berth_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_berth_submission() { # submit, run
    case $prev in
    --image | -i) _berth_words $(_berth_names image ls) ;;
    --node | -w) _berth_nodes ;;
    --array | -a | --dependency) ;;
    --env | -e) _berth_words $(compgen -e) ;;
    --on-limit) _berth_words grow freeze kill ;;
    --on-timeout) _berth_words checkpoint kill ;;
    --vcpus | -c | --vcpus-max | --memory | -m | --memory-max | --disk | -d | --time | -t | --name | -n | --priority | -p | \
        --grace | --checkpoint-every | --checkpoint-keep | --checkpoint-signal | --restore-signal | --chdir | -D | --key) ;;
    *)
        if [[ $cur == -* ]]; then
            _berth_words --vcpus --vcpus-max --memory --memory-max --on-limit --disk --time --on-timeout --image --name --env --env-all --input \
                --output --error --chdir --array --each --dependency --node --priority --grace --checkpoint-every \
                --checkpoint-keep --checkpoint-signal --restore-signal --hold --no-requeue --guaranteed --key --help
        else
            _berth_files
        fi ;;
    esac
}

_berth_list() { # ls
    case $prev in
    --state | -s)
        _berth_words PENDING RUNNING SUSPENDED COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL \
            OUT_OF_MEMORY ;;
    --user | -u) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
    *) _berth_words $(_berth_names ls) --all --all-users --user --state --tasks --watch --json --help ;;
    esac
}

_berth_top() {
    case $prev in
    --sort | -s) _berth_words cpu memory pressure time move name ;;
    --node | -n) _berth_words $(_berth_names node ls) ;;
    --user | -u) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
    --interval | -i) ;;
    *) _berth_words --interval --sort --node --user --once --json --help ;;
    esac
}

_berth_image() { # SUBCOMMAND, "" while it is being typed
    case $1 in
    "") _berth_words import ls show rm --help ;;
    import)
        if [[ $cur == -* ]]; then
            _berth_words --json --help
        else
            _berth_files
        fi ;;
    ls) _berth_words --json --help ;;
    show) _berth_words $(_berth_names image ls) --json --help ;;
    rm) _berth_words $(_berth_names image ls) --help ;;
    esac
}

_berth_help() { # the first word of a command, "" while it is being typed
    case $1 in
    "") _berth_words submit bulk run ls show why top logs events wait cancel hold release freeze thaw checkpoint restore migrate resize extend exec attach node image backup version ;;
    node) _berth_words ls show cordon uncordon drain undrain down up exec roll ;;
    image) _berth_words import ls show rm ;;
    checkpoint) _berth_words ls rm ;;
    esac
}

_berth_verb() { # VERB [SUBCOMMAND]
    case $1 in
    help) ((COMP_CWORD <= i + 2)) && _berth_help "${2-}" ;;
    submit | run) _berth_submission ;;
    bulk)
        case $prev in
        --key | -k) ;;
        *) [[ $cur == -* ]] && _berth_words --key --help || _berth_files ;;
        esac ;;
    ls) _berth_list ;;
    show) _berth_words $(_berth_names ls --all) --json --help ;;
    why) _berth_words $(_berth_names ls --all) --json --help ;;
    top) _berth_top ;;
    wait) _berth_words $(_berth_names ls) --quiet --json --help ;;
    cancel | hold | release) _berth_job_change --all --user --name ;;
    exec) _berth_words $(_berth_names ls) --tty --no-input --guest --reason --help ;;
    attach) _berth_words $(_berth_names ls) --guest --reason --help ;;
    migrate) _berth_job_change --to --wait --cancel ;;
    resize) _berth_job_change --vcpus --memory --wait ;;
    extend) _berth_job_change --time --by ;;
    freeze) _berth_job_change --to-disk --no-wait ;;
    thaw)
        case $prev in
        --to | -t) _berth_nodes ;;
        *) _berth_job_change --to --no-wait ;;
        esac ;;
    checkpoint)
        case ${2-} in
        "") _berth_words ls rm $(_berth_names ls) --reason --wait --every --json --help ;;
        ls) _berth_words $(_berth_names ls) --json --help ;;
        rm) _berth_job_change ;;
        *) _berth_job_change --wait --every ;;
        esac ;;
    restore) _berth_job_change --wait ;;
    events) _berth_words $(_berth_names ls --all) --follow --since --node --json --help ;;
    logs) _berth_words $(_berth_names ls --all) --follow --quiet --stdout --stderr --help ;;
    node)
        case ${2-} in
        "") _berth_words ls show cordon uncordon drain undrain down up exec roll --help ;;
        ls) _berth_words --json --help ;;
        show) _berth_words $(_berth_names node ls) --json --help ;;
        cordon | uncordon | undrain | up) _berth_node_change --reason --json --help ;;
        down) _berth_node_change --reason --force --json --help ;;
        exec) _berth_node_change --reason --help ;;
        drain) _berth_node_change --reason --deadline --plan --no-wait --json --help ;;
        roll) _berth_node_change --reason --parallel --deadline --rejoin --no-restart --help ;;
        esac ;;
    image) _berth_image "${2-}" ;;
    backup) [[ $cur == -* ]] && _berth_words --json --help || _berth_files ;;
    version) _berth_words --json --help ;;
    esac
}

_berth() {
    local program=$1 socket= i=1
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ $cur == = ]]; then # "--image=": bash makes three words of "--image=NAME"
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $prev == --socket ]]; then
        _berth_files
        return
    fi
    if [[ ${COMP_WORDS[1]} == --socket ]]; then
        i=3
        [[ ${COMP_WORDS[2]-} == = ]] && i=4
        socket=${COMP_WORDS[i - 1]-}
    fi
    if ((COMP_CWORD <= i)); then
        _berth_words submit bulk run ls show why top logs events wait cancel hold release freeze thaw checkpoint restore migrate resize extend exec attach node image backup version help --help \
            --version --socket
    elif ((COMP_CWORD == i + 1)); then
        _berth_verb "${COMP_WORDS[i]}"
    else
        _berth_verb "${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}"
    fi
} && complete -F _berth berth
