# bash completion for berth-lab(1)                              -*- shell-script -*-
# Labs and services are asked from berth-lab, within a second or not at all (or within
# BERTH_COMPLETION_TIMEOUT seconds). Nothing but bash is needed. Functions below use these variables
# of _berth_lab: cur, prev, program, name.

_berth_lab_words() { # WORD...: those that begin as what is typed
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_berth_lab_ask() { # COMMAND...: what it prints
    timeout "${BERTH_COMPLETION_TIMEOUT:-1}" "$program" "$@" ${name:+--name "$name"} 2>/dev/null
}

_berth_lab_services() { # berthd, the nodes' agents, and all by place
    local place service _
    local -a words=(berthd)
    while read -r place _; do
        [[ $place == */* ]] || continue
        service=${place#*/}
        words+=("$place")
        [[ $service == berth-node ]] && words+=("${place%%/*}")
    done < <(_berth_lab_ask status)
    _berth_lab_words "${words[@]}"
}

_berth_lab_places() { # the host, and the nodes
    local place _
    local -a words=(host)
    while read -r place _; do
        [[ $place == */berth-node ]] && words+=("${place%%/*}")
    done < <(_berth_lab_ask status)
    _berth_lab_words "${words[@]}"
}

_berth_lab_command() { # COMMAND
    case $1 in
    up)
        case $prev in
        --storage) _berth_lab_words rbd dir ;;
        --prefix) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --nodes | --vcpus | --memory | --ceph-size | --wrap | --owner) ;;
        *) _berth_lab_words --nodes --storage --vcpus --memory --ceph-size --prefix --wrap --keep --owner --name ;;
        esac ;;
    down) _berth_lab_words --all --name ;;
    shell | exec) _berth_lab_places ;;
    logs | restart | stop | start | pid) _berth_lab_services ;;
    kill)
        case $prev in
        -s) _berth_lab_words HUP INT KILL TERM STOP CONT USR1 USR2 ;;
        *) _berth_lab_services ;;
        esac ;;
    *) _berth_lab_words --name ;;
    esac
}

_berth_lab() {
    local program=$1 name='' command='' i
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == --name ]]; then
            name=${COMP_WORDS[++i]}
        elif [[ -z $command ]]; then
            command=${COMP_WORDS[i]}
        fi
    done
    if [[ $prev == --name ]]; then
        name=
        _berth_lab_words "$(_berth_lab_ask list)"
    elif [[ -z $command ]]; then
        _berth_lab_words up down status list env shell exec logs restart kill stop start pid help \
            --name --help
    else
        _berth_lab_command "$command"
    fi
} && complete -F _berth_lab berth-lab
