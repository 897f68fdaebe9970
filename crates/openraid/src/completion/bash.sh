# Completion of openraid in bash. The program finds the words; this gives it the line as the shell reads it.
_openraid() {
    local rest=${COMP_LINE:0:COMP_POINT} space word words=() candidate i
    # Readline divides words at = and : too. What has no space between it is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        space=${rest%%[![:space:]]*}
        rest=${rest#"$space"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$rest
        rest=${rest#"$word"}
        if ((i == 0)) || [[ -n $space ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
    local last=$((${#words[@]} - 1))
    word=${words[last]}
    # A quote that is open is kept by readline; characters with a backslash are compared as they are.
    local quote=
    case $word in
    [\'\"]*) quote=${word:0:1} word=${word:1} ;;
    *) word=${word//\\/} ;;
    esac
    words[last]=$word
    mapfile -t COMPREPLY < <(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$last _CLAP_COMPLETE_COMP_TYPE=$COMP_TYPE \
        _CLAP_COMPLETE_SPACE=false COMPLETE=bash openraid -- "${words[@]}" 2>/dev/null)
    # Readline replaces only what follows the last = or :.
    local done=
    [[ -n $quote ]] || done=${word%"${word##*[=:]}"}
    for i in "${!COMPREPLY[@]}"; do
        candidate=${COMPREPLY[i]#"$done"}
        [[ -n $quote || -z $candidate ]] || printf -v candidate %q "$candidate"
        COMPREPLY[i]=$candidate
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _openraid openraid
