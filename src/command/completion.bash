# Completion of the command colock for bash. The words are taken from --help.

_colock() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        local subcommands
        subcommands=$("$1" --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$subcommands --help --version" -- "$current")
        return
    fi
    for ((i = 2; i < COMP_CWORD; ++i)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then # the rest is another command
            mapfile -t COMPREPLY < <(compgen -c -- "$current")
            [ $((i + 1)) -eq "$COMP_CWORD" ] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
        fi
    done
    if [ "$previous" = --ticket ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    elif [[ $current == -* ]]; then
        local options
        options=$("$1" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -n '/^Options:/,$p' | grep -o -- '--[a-z-]*')
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    fi
}
complete -F _colock colock
