#compdef openraid
# Completion of openraid in zsh, read by `source` or found in a folder of fpath. The program finds the words.
_openraid_words() {
    local line
    local -a ended open all=("${(Q)words[@]}")
    # A quote that is open is no part of the word; zsh quotes what it inserts.
    [[ $all[CURRENT] != [\'\"]* || $all[CURRENT] != "$words[CURRENT]" ]] || all[CURRENT]=${all[CURRENT][2,-1]}
    # A name has a backslash before each colon; what follows the first other colon is a description.
    for line in "${(@f)$(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) COMPLETE=zsh openraid -- "${all[@]}" 2>/dev/null)}"; do
        case ${${line//\\:/}%%:*} in
        '') ;;
        *[=/]) open+=("$line") ;;
        *) ended+=("$line") ;;
        esac
    done
    [[ -z $open ]] || _describe -V values open -S ''
    [[ -z $ended ]] || _describe -V values ended
}
if [[ $funcstack[1] == _openraid ]]; then
    compdef _openraid_words openraid
    _openraid_words
else
    compdef _openraid_words openraid
fi
