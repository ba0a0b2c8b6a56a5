#!/usr/bin/env bash
# Programs as they are: each writes a file into a queue in its own way, and leaves exactly one message, whole, and nothing else.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
cd "$scratch" || exit 1
printf 'line one\nline two\n' >small
head -c 700000 /dev/urandom >large
mkdir tree
cp small tree/a.txt
cp large tree/b.bin
forget_all() { find "$q" -maxdepth 1 \( -type f -o -type l \) -delete; }
all_claimable() { # within a moment (a file made O_EXCL with mode 0600 is held back)
    local name
    while IFS= read -r name; do
        wait_until 3 bash -c 'mv "$1/$2" "$1/claimed/w/" 2>/dev/null' - "$q" "$name" || return
        cmp "${expected_file:-small}" "$q/claimed/w/$name" || [ -n "${any_content:-}" ] || return
        rm "$q/claimed/w/$name"
    done < <(ls -U "$q" | grep -vxE 'claimed|dead')
}

# SENTENCE MESSAGE FILE COMMAND...: the command must exit with 0 and leave the one message MESSAGE with the content of FILE.
writes() {
    local sentence=$1 name=$2 file=$3 published status=0 seen
    shift 3
    published=$(counter q published)
    "$@" >"$last_output" 2>&1 </dev/null || status=$?
    seen="exit $status, messages: $(names q)"
    if cmp -s "$file" "$q/$name"; then seen+=", content right"; else seen+=", content wrong"; fi
    expected_file=$file all_claimable >"$scratch/claims" 2>&1 && seen+=", claimed"
    seen+=", staged: $(counter q staged), published: $(($(counter q published) - published))"
    is "$sentence" "exit 0, messages: $name, content right, claimed, staged: 0, published: 1" "$seen"
    [ $status = 0 ] || sed 's/^/#   /' "$last_output"
    forget_all
}
has() { command -v "$1" >/dev/null; }

for file in small large; do
    writes "cp, $file" m $file cp $file "$q/m"
    writes "cp -p, $file" m $file cp -p $file "$q/m"
    writes "cp into the directory, $file" $file $file cp $file "$q/"
    writes "cp --remove-destination, $file" m $file cp --remove-destination $file "$q/m"
    writes "install, $file" m $file install -m 640 $file "$q/m"
    writes "cat >, $file" m $file sh -c 'cat "$1" >"$2"' - $file "$q/m"
    writes "cat > in dash, $file" m $file dash -c 'cat "$1" >"$2"' - $file "$q/m"
    writes "tee, $file" m $file sh -c 'tee "$2" <"$1" >/dev/null' - $file "$q/m"
    writes "tee -a, $file" m $file sh -c 'tee -a "$2" <"$1" >/dev/null' - $file "$q/m"
    writes "dd, $file" m $file dd if=$file of="$q/m" bs=4096
    writes "dd conv=fsync, $file" m $file dd if=$file of="$q/m" bs=64k conv=fsync
    writes "dd oflag=direct,append conv=notrunc, $file" m $file dd if=$file of="$q/m" bs=64k oflag=append conv=notrunc
    cp $file moved
    writes "mv from another filesystem, $file" moved $file mv moved "$q/"
    writes "mktemp, write, mv, $file" m $file sh -c 't=$(mktemp "$2/.tmp.XXXXXX") && cat "$1" >"$t" && mv "$t" "$2/m"' - $file "$q"
    writes "mktemp without a dot, write, mv, $file" m $file sh -c 't=$(mktemp "$2/XXXXXX") && cat "$1" >"$t" && mv "$t" "$2/m"' - $file "$q"
    writes "head -c, $file" m $file sh -c 'head -c 10000000 "$1" >"$2"' - $file "$q/m"
    writes "split, $file" maa $file split -b 10M $file "$q/m"
done
writes "sort -o" m small sort -o "$q/m" small
writes "awk >" m small awk -v out="$q/m" '{ print >out }' small
writes "sed w" m small sed -n "w $q/m" small
head -c 5000 /dev/zero >zeros
writes "truncate -s" m zeros truncate -s 5000 "$q/m"
writes "fallocate -l" m zeros fallocate -l 5000 "$q/m"
t "echo >> in a loop leaves one message" bash -c 'for i in 1 2 3; do echo "$i" >>"$1"; done' - "$q/loop"
is "with all the lines" $'1\n2\n3' "$(contents q/loop)"
forget_all

# --- several files ---
t "cp -r DIRECTORY/. QUEUE" cp -r tree/. "$q"
is "makes a message of each file" "2 0" "$(counter q waiting) $(counter q staged)"
t "each whole" bash -c 'cmp tree/a.txt "$1/a.txt" && cmp tree/b.bin "$1/b.bin"' - "$q"
any_content=1
t "which can be claimed" all_claimable
tar cf tree.tar -C tree a.txt b.bin
t "tar x" tar xf tree.tar -C "$q"
is "makes a message of each member" "2 0 a.txt b.bin" "$(counter q waiting) $(counter q staged) $(names q)"
t "each whole" bash -c 'cmp tree/a.txt "$1/a.txt" && cmp tree/b.bin "$1/b.bin"' - "$q"
t "which can be claimed" all_claimable
tar czpf tree.tgz -C tree a.txt b.bin
t "tar xzp" tar xzpf tree.tgz -C "$q"
is "makes a message of each member, too" "2 0" "$(counter q waiting) $(counter q staged)"
t "which can be claimed" all_claimable
t "split makes a message of each piece" split -l 1 small "$q/piece."
is "in order" "piece.aa piece.ab" "$(names q)"
t "which can be claimed" all_claimable
unset any_content
if has unzip && has zip; then
    (cd tree && zip -q ../one.zip a.txt)
    writes "unzip" a.txt small unzip -q one.zip -d "$q"
    cd tree || exit 1
    t "zip writes into a queue" zip -q "$q/new.zip" a.txt b.bin
    cd .. || exit 1
    is "leaves one message" "new.zip 0" "$(names q) $(counter q staged)"
    t "which is whole" bash -c 'cp "$1/new.zip" copy.zip && unzip -qt copy.zip' - "$q"
    any_content=1
    t "and can be claimed" all_claimable
    unset any_content
fi
cp small "$q/g"
t "gzip in place" gzip "$q/g"
is "leaves the compressed file only" "g.gz 0" "$(names q) $(counter q staged)"
is "which is whole" "$(cat small)" "$(gzip -dc <"$q/g.gz")"
forget_all
gzip -c small >"$q/.g.gz" && mv "$q/.g.gz" "$q/g.gz"
t "gunzip in place" gunzip "$q/g.gz"
is "leaves the plain file only" "g 0" "$(names q) $(counter q staged)"
t "which is whole, too" cmp small "$q/g"
forget_all

# --- editing in place ---
echo 'line 1' >"$q/m"
t "sed -i on a waiting message" sed -i s/1/2/ "$q/m"
is "under keep leaves both, the old one under a number" "m~1 m|line 1|line 2" "$(names q)|$(payloads q)"
is "and nothing else" 0 "$(counter q staged)"
forget_all
queue q on_conflict=replace
echo 'line 1' >"$q/m"
t "sed -i on a waiting message" sed -i s/1/2/ "$q/m"
is "under replace leaves the new one" "m|line 2|0" "$(names q)|$(payloads q)|$(counter q staged)"
forget_all
queue q on_conflict=keep

if has vim; then
    editor() { vim -es -u NONE "$@"; }
    t "vim writes a new file" editor +'call setline(1, ["line one", "line two"])' +wq "$q/v"
    is "which is one message" "v 0" "$(names q) $(counter q staged)"
    t "of that content" cmp small "$q/v"
    t "vim changes a waiting message" editor +'%s/two/2/' +wq "$q/v"
    is "which leaves the new content under the name" $'line one\nline 2' "$(contents q/v)"
    is "and no side files" 0 "$(counter q staged)"
    forget_all
    cp small "$q/v"
    t "vim with backupcopy=no, writebackup and swap files" vim -es -N -u NONE +'set backupcopy=no writebackup swapfile' +'%s/two/2/' +wq "$q/v"
    is "leaves the new content under the name, too" $'line one\nline 2 0' "$(contents q/v) $(counter q staged)"
    forget_all
fi
if has rsync; then
    for options in -a '-a --inplace' '-a --delay-updates' '-a --whole-file --fsync'; do
        # shellcheck disable=SC2086
        writes "rsync $options" small small rsync $options small "$q/"
    done
fi
cd / || exit 1
spool_done
