#!/bin/sh
# Says which checkpoints on this node look whole, for nodes without python3.
#
# usage: sh -s -- PATH... < checkpoint_inspector.sh
#
# POSIX shell with stat, find, od, head, tail, df. Prints the same JSON shape as
# checkpoint_inspector.py, but sees less: sizes, holes, beginnings and ends of files, missing parts
# by name, pointers. It reads no pickle and no checksum, so nothing is better than "warn".
LC_ALL=C
export LC_ALL

tab=$(printf '\t')
line_end='
'

quote() { # text for JSON
    printf '%s' "$1" | tr '\n\t' '  ' | sed 's/[\\"]/\\&/g' | tr -d '\000-\037' | tr '\200-\377' '?'
}

say() { # code level component words
    remedy='resume from the step before; move this one out of the directory (never rename it in place)'
    [ "$2" = warn ] && remedy='install python3 on this node, or inspect the checkpoint from another'
    found="$found${found:+,}{\"code\":\"$1\",\"level\":\"$2\",\"component\":\"$(quote "$3")\",\"finding\":\"$(quote "$4")\",\"remedy\":\"$remedy\"}"
    [ "$2" = fail ] && level=fail
    return 0
}

number() { # bytes at an offset as one unsigned number: file offset width
    tail -c "+$(($2 + 1))" "$1" 2>/dev/null | head -c "$3" | od -A n -t "u$3" | tr -d ' \n'
}

safetensors() { # file name size
    n=$(number "$1" 0 8)
    case $n in ''|*[!0-9]*|????????????*) say C11 fail "$2" 'its header length is damaged'; return;; esac
    if [ "$((n + 8))" -gt "$3" ]; then say C11 fail "$2" 'cut inside its header'; return; fi
    end=$(tail -c +9 "$1" | head -c "$n" | tr -d ' ' | grep -o '"data_offsets":\[[0-9]*,[0-9]*\]' |
        sed 's/.*,\([0-9]*\)]/\1/' | sort -n | tail -n 1)
    if [ "$((n + 8 + ${end:-0}))" -ne "$3" ]; then
        say C11 fail "$2" "$3 bytes, its header says $((n + 8 + ${end:-0})): cut or appended"
    fi
}

torch() { # file name size
    head=$(head -c 4 "$1" | od -A n -t x1 | tr -d ' \n')
    case $head in
    504b0304)
        end=$(tail -c 22 "$1" | od -A n -t x1 | tr -d ' \n')
        case $end in
        504b0506*0000) ;;
        *) say C06 fail "$2" "the zip directory's end is not at its end: cut, torn, or something was appended" ;;
        esac ;;
    80*) ;;
    00000000) say C06 fail "$2" 'begins with zeros' ;;
    *) say C06 fail "$2" 'neither a zip nor a pickle: damaged' ;;
    esac
}

one_file() { # file name
    set -- "$1" "$2" $(stat -c '%s %b %B %Y' "$1" 2>/dev/null)
    [ -n "$3" ] || { say C30 fail "$2" 'cannot be read'; return; }
    bytes=$((bytes + $3))
    [ "$6" -gt "$newest" ] && newest=$6
    case $2 in
    *.tmp|*.dirty.pt|*-unfinished|*checkpoint-is-incomplete.txt|*.partial|*.incomplete)
        say C03 fail "$2" 'left over by an interrupted save'; return ;;
    esac
    case $2 in
    *.pt|*.pth|*.bin|*.ckpt|*.pkl|*.safetensors|*.distcp|*.json|*.metadata)
        if [ "$3" -eq 0 ]; then say C01 fail "$2" 'empty: its content never reached the disk'; return; fi ;;
    esac
    if [ "$exact" = yes ] && [ "$3" -gt 65536 ] && [ "$(($4 * $5))" -lt "$3" ]; then
        say C02 fail "$2" 'it has a hole: a part was never written'; return
    fi
    case $2 in
    *.safetensors) safetensors "$1" "$2" "$3"; parts="$parts model" ;;
    *.pt|*.pth|*.bin|*.ckpt|*.pkl) torch "$1" "$2" "$3" ;;
    esac
    case ${2##*/} in
    optimizer*|*optim_states.pt|distrib_optim.pt) parts="$parts optimizer" ;;
    scheduler*) parts="$parts scheduler" ;;
    rng_state*|random_states*) parts="$parts rng" ;;
    *.distcp) parts="$parts model optimizer" ;;
    pytorch_model*|*model_states.pt|model_optim_rng.pt) parts="$parts model" ;;
    esac
}

layout() { # folder: what must be there by name
    case ${1##*/} in
    checkpoint-[0-9]*)
        framework=hf-trainer
        [ -e "$1/trainer_state.json" ] || say C15 fail trainer_state.json 'trainer_state.json is missing'
        if [ -e "$1/optimizer.pt" ] && [ ! -e "$1/scheduler.pt" ]; then
            say C15 fail scheduler.pt 'scheduler.pt is missing beside its pair'
        elif [ ! -e "$1/optimizer.pt" ] && [ -e "$1/scheduler.pt" ]; then
            say C15 fail optimizer.pt 'optimizer.pt is missing beside its pair'
        fi ;;
    iter_[0-9]*)
        framework=megatron
        if [ -e "$1/.metadata" ] && [ ! -e "$1/metadata.json" ]; then
            say C14 fail metadata.json 'no metadata.json: the save never finished'
        fi ;;
    global_step[0-9]*) framework=deepspeed ;;
    *) framework=dcp ;;
    esac
    if [ -n "$(find "$1" -name '*.distcp' 2>/dev/null | head -n 1)" ] &&
        [ -z "$(find "$1" -name '*.metadata' 2>/dev/null | head -n 1)" ]; then
        say C13 fail .metadata 'no .metadata: the save never finished'
    fi
}

checkpoint() { # path
    found='' level=warn bytes=0 newest=0 parts='' framework=torch alias=false
    step=$(printf '%s' "${1##*/}" | sed -n 's/^[^0-9]*step[-=_]\{0,1\}0*\([0-9][0-9]*\).*$/\1/p')
    [ -n "$step" ] || step=$(printf '%s' "${1##*/}" | sed -n 's/^.*[^0-9]0*\([0-9][0-9]*\)[^0-9]*$/\1/p')
    case $step in ''|??????????????*) step=null alias=true ;; esac
    if [ -d "$1" ]; then
        layout "$1"
        files=$(find "$1" -type f 2>/dev/null | sort | head -n 20000)
        [ -n "$files" ] || say C01 fail '' 'an empty directory: nothing was saved'
        old_ifs=$IFS IFS=$line_end
        set -f
        for file in $files; do IFS=$old_ifs; one_file "$file" "${file#"$1"/}"; IFS=$line_end; done
        set +f
        IFS=$old_ifs
        seen=$(find "$1" -type f -exec stat -c '%n %s %Y %i' {} + 2>/dev/null | sort | cksum)
    else
        one_file "$1" "${1##*/}"
        parts="$parts model optimizer"
        seen=$(stat -c '%n %s %Y %i' "$1" 2>/dev/null | cksum)
    fi
    [ "$level" = warn ] && say shell warn '' 'looks whole from outside; its content was not read'
    components=$(printf '%s\n' $parts | sort -u | sed '/^$/d; s/.*/"&"/' | tr '\n' ',' | sed 's/,$//')
    rows="$rows${rows:+,}{\"step\":$step,\"level\":\"$level\",\"path\":\"$(quote "$1")\",\"framework\":\"$framework\",\"components\":[$components],\"findings\":[$found],\"facts\":{\"bytes\":$bytes,\"newest\":$newest},\"ranks\":null,\"absent\":[],\"alias\":$alias,\"files\":[],\"files_left_out\":0,\"seen\":\"$(quote "$seen")\",\"content\":\"\"}"
}

pointer() { # path
    text=$(head -c 80 "$1" | tr -d '\000' | tr -d '\n')
    step=${text#global_step} problem='' words=''
    case $step in ''|*[!0-9]*) step=null ;; esac
    [ -s "$1" ] || { problem=empty; words='the pointer is empty'; }
    [ "$(head -c 80 "$1" | tr -d '\000' | wc -c)" -eq "$(head -c 80 "$1" | wc -c)" ] || { problem=nul; words='the pointer holds NUL bytes'; }
    points="$points${points:+,}{\"path\":\"$(quote "$1")\",\"text\":\"$(quote "$text")\",\"step\":$step,\"problem\":\"$problem\",\"words\":\"$words\"}"
}

place() { # path
    storage=null
    if [ -e "$1" ]; then
        set -- "$1" $(df -P -k "$1" 2>/dev/null | tail -n 1)
        kind=$(awk -v m="$7" '$2 == m { k = $3 } END { print k }' /proc/mounts 2>/dev/null)
        ro=$(awk -v m="$7" '$2 == m { o = $4 } END { print (("," o ",") ~ /,ro,/) ? "true" : "false" }' /proc/mounts 2>/dev/null)
        case $kind in ext2|ext3|ext4|xfs) exact=yes ;; *) exact=no ;; esac
        storage="{\"source\":\"$(quote "$2")\",\"fstype\":\"$(quote "$kind")\",\"inode\":$(stat -c %i "$1"),\"free_bytes\":$((${5:-0} * 1024)),\"read_only\":${ro:-false}}"
        exists=true
    else
        exists=false
    fi
    places="$places${places:+,}{\"path\":\"$(quote "$1")\",\"exists\":$exists,\"storage\":$storage}"
}

rows='' points='' places='' exact=no
for path in "$@"; do
    case $path in --*) continue ;; esac
    place "$path"
    [ -e "$path" ] || continue
    folders=$(find "$path" -maxdepth 4 -type d \( -name 'checkpoint-[0-9]*' -o -name 'checkpoint_[0-9]*' \
        -o -name 'iter_[0-9]*' -o -name 'global_step[0-9]*' -o -name 'step-[0-9]*' \) -prune 2>/dev/null |
        sort | tail -n 200)
    singles=$(find "$path" -maxdepth 3 -type d \( -name 'checkpoint[-_][0-9]*' -o -name 'iter_[0-9]*' \
        -o -name 'global_step[0-9]*' -o -name 'step-[0-9]*' \) -prune -o -type f \
        \( -name '*.ckpt' -o -name '*.pth' -o -name '*[0-9].pt' \) -print 2>/dev/null | sort | tail -n 200)
    pointers=$(find "$path" -maxdepth 3 -type f \( -name latest -o -name latest_checkpointed_iteration.txt \) 2>/dev/null)
    old_ifs=$IFS IFS=$line_end
    set -f
    for one in $folders $singles; do IFS=$old_ifs; checkpoint "$one"; IFS=$line_end; done
    for one in $pointers; do IFS=$old_ifs; pointer "$one"; IFS=$line_end; done
    set +f
    IFS=$old_ifs
done
printf '{"inspector":1,"power":"shell","deep":false,"now":%s,"host":"%s","checkpoints":[%s],"pointers":[%s],"paths":[%s],"findings":[],"errors":[],"left_out":0,"end":true}\n' \
    "$(date +%s)" "$(quote "$(uname -n)")" "$rows" "$points" "$places"
