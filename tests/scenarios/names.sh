#!/usr/bin/env bash
# Names: any bytes, 1 to 255 of them, through the whole life of a message.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
cd "$mnt" || exit 1

long=$(printf 'x%.0s' {1..255})
umlauts=$(printf 'ä%.0s' {1..127})
odd=("with space" " leading and trailing " $'new\nline' $'\n' $'tab\t' "quote'\"" 'back\slash' '$dollar `tick`' '*' '?' '[a]'
    '%s%n' '-rf' '--' 'a;b|c&d' 'ünïcödé' $'\xff\xfe\x80' $'broken\xc3' $'\x01\x02\x7f' 'Claimed' 'dead ' 'claimed.x' '1' "a=b,c=d"
    "$long" "${umlauts}y")
holds() { [ "$(cat "$1"; echo .)" = "content of $2." ]; }
is_listed() { "$python" -c 'import os, sys; sys.exit(os.fsencode(sys.argv[1]) not in os.listdir(b"q"))' "$1"; }
whole_life() { # NAME: sets $step to what was being tried
    local name=$1
    step=publish && printf 'content of %s' "$name" >"q/$name" && holds "q/$name" "$name" || return
    step=list && is_listed "$name" || return
    step=claim && mv -- "q/$name" q/claimed/w/ && holds "q/claimed/w/$name" "$name" || return
    step=release && mv -- "q/claimed/w/$name" q/ || return
    step=withdraw && mv -- "q/$name" q/.staged && mv -- q/.staged "q/$name" || return
    step=bury && mv -- "q/$name" q/dead/ && mv -- "q/dead/$name" q/ || return
    step=acknowledge && mv -- "q/$name" q/claimed/w/ && rm -- "q/claimed/w/$name"
}
for name in "${odd[@]}"; do
    whole_life "$name" 2>"$last_output"
    verdict $? "the name $(printf '%q' "$name" | cut -c1-40) goes all the way" "failed at: $step" "$(cat "$last_output")"
done
is "nothing is left of them" "0 0 0 0" "$(counter q waiting) $(counter q claimed) $(counter q dead) $(counter q staged)"

errno "a name of 256 bytes is ENAMETOOLONG at create" ENAMETOOLONG open "q/${long}x" 'O_WRONLY|O_CREAT'
errno "at mkdir" ENAMETOOLONG mkdir "${long}x"
errno "at mkdir of a worker" ENAMETOOLONG mkdir "q/claimed/${long}x"
errno "at lookup" ENAMETOOLONG stat "q/${long}x"
errno "at symlink" ENAMETOOLONG symlink x "q/.${long}"
publish q/m x
errno "at rename" ENAMETOOLONG rename q/m "q/${long}x"
errno "at claim" ENAMETOOLONG rename q/m "q/claimed/w/${long}x"
errno "at link" ENAMETOOLONG link q/m "q/${long}x"
errno "a name of 1000 bytes as well" ENAMETOOLONG open "q/$long$long$long$long" 'O_WRONLY|O_CREAT'
is "and the message keeps its name" m "$(names q)"
rm q/m

for name in "two words" $'a\nb' $'\xff' "$long" "ü"; do
    shown=$(printf '%q' "$name" | cut -c1-40)
    t "a queue may be called $shown" mkdir "$name"
    t "a worker may be called $shown" mkdir "$name/claimed/$name"
    t "and it works" bash -c 'echo x >"$1/m" && mv "$1/m" "$1/claimed/$1/" && rm "$1/claimed/$1/m"' - "$name"
    t "and goes with rm -r" rm -r "$name"
done

# Numbered names of long names fit, byte by byte.
for name in "$long" "${long:0:251}.xml" "${umlauts}.xml" "x.${long:0:253}"; do
    name=$(printf '%s' "$name" | head -c 255)
    publish "q/$name" old
    publish "q/$name" new
    is "the numbered name of $(printf '%s' "$name" | wc -c) bytes fits, and nothing is lost" "old|new" "$(payloads q)"
    is "the new one has the name" new "$(contents "q/$name")"
    find q -maxdepth 1 -type f -delete
done
cd / || exit 1
spool_done
